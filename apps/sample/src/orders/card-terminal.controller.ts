import { Body, Controller, Get, Put, UseGuards } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import { AdminTokenGuard } from '../admin/admin-token.guard.js';
import { CardTerminal } from './card-terminal.js';

class CardTerminalDto {
  @IsBoolean()
  declines!: boolean;
}

/** Makes orders fail, and lets them succeed again, to try out what can be done about it. A real terminal has no such route. */
@Controller('card-terminal')
@UseGuards(AdminTokenGuard)
export class CardTerminalController {
  constructor(private readonly terminal: CardTerminal) {}

  @Get()
  async show(): Promise<CardTerminalDto> {
    return { declines: await this.terminal.declines() };
  }

  @Put()
  async change(@Body() { declines }: CardTerminalDto): Promise<CardTerminalDto> {
    await this.terminal.setDeclines(declines);
    return { declines };
  }
}
