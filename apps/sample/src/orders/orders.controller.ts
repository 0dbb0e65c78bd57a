import type { IncomingMessage } from 'node:http';
import {
  BadRequestException,
  Body,
  Controller,
  Get,
  HttpCode,
  HttpStatus,
  NotFoundException,
  Param,
  Post,
  Req,
} from '@nestjs/common';
import { readCsvBody } from './csv-body.js';
import { CsvFormatError } from './csv-separator.js';
import { OrdersImport, type ImportReport } from './orders-import.service.js';
import type { Payment } from './order.steps.js';
import { OrdersService } from './orders.service.js';
import { PlaceOrderDto } from './place-order.dto.js';

@Controller('orders')
export class OrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly imports: OrdersImport,
  ) {}

  /** The work goes on after the answer. `created` is false for an order that was accepted before. */
  @Post()
  @HttpCode(HttpStatus.ACCEPTED)
  async place(@Body() order: PlaceOrderDto) {
    const { runId, created } = await this.orders.place(order);
    return { id: order.id, runId, created };
  }

  /** A CSV file with one order line in each line, as `npm run demo -- --file` takes it. The same file twice makes nothing twice. */
  @Post('import')
  @HttpCode(HttpStatus.ACCEPTED)
  async import(@Req() request: IncomingMessage): Promise<ImportReport> {
    const text = await readCsvBody(request);
    try {
      return await this.imports.import(text);
    } catch (error) {
      if (error instanceof CsvFormatError) throw new BadRequestException(error.message);
      throw error;
    }
  }

  /**
   * Waits a little until the order has been charged. 404 when it is unknown or its run was purged, 409 when the run has failed, 504 when
   * it is still under way: the errors of Cyclone that `result` throws are answered so by CycloneHttpInterceptor.
   */
  @Get(':id/payment')
  async payment(@Param('id') id: string): Promise<Payment> {
    const payment = await this.orders.payment(id);
    if (!payment) throw new NotFoundException(`There is no order ${id}.`);
    return payment;
  }

  @Get(':id')
  async find(@Param('id') id: string) {
    const order = await this.orders.find(id);
    if (!order) throw new NotFoundException(`There is no order ${id}.`);
    return order;
  }
}
