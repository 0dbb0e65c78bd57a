import { Body, Controller, Get, HttpCode, HttpStatus, NotFoundException, Param, Post } from '@nestjs/common';
import { OrdersService } from './orders.service.js';
import { PlaceOrderDto } from './place-order.dto.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  /** The work goes on after the answer. `created` is false for an order that was accepted before. */
  @Post()
  @HttpCode(HttpStatus.ACCEPTED)
  async place(@Body() order: PlaceOrderDto) {
    const { runId, created } = await this.orders.place(order);
    return { id: order.id, runId, created };
  }

  @Get(':id')
  async find(@Param('id') id: string) {
    const order = await this.orders.find(id);
    if (!order) throw new NotFoundException(`There is no order ${id}.`);
    return order;
  }
}
