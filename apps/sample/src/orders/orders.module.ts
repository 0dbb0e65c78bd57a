import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CardTerminalSwitch } from './card-terminal-switch.entity.js';
import { CardTerminalController } from './card-terminal.controller.js';
import { CardTerminal } from './card-terminal.js';
import { LedgerEntry } from './ledger-entry.entity.js';
import { MailServer } from './mail-server.js';
import { Order } from './order.entity.js';
import { OrdersImport } from './orders-import.service.js';
import { OrderSteps } from './order.steps.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';
import { OutboxMail } from './outbox-mail.entity.js';
import { PlaceOrder } from './place-order.workflow.js';
import { StockMovement } from './stock-movement.entity.js';

@Module({
  imports: [TypeOrmModule.forFeature([Order, LedgerEntry, StockMovement, OutboxMail, CardTerminalSwitch])],
  controllers: [OrdersController, CardTerminalController],
  // Steps and workflows are ordinary providers.
  providers: [OrdersService, OrdersImport, OrderSteps, PlaceOrder, CardTerminal, MailServer],
  exports: [OrdersService],
})
export class OrdersModule {}
