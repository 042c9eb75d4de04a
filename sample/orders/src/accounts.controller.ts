import { Controller, Get, Param, ParseIntPipe, Post } from '@nestjs/common';
import { AccountsService } from './accounts.service.js';

@Controller('accounts')
export class AccountsController {
  constructor(private readonly accounts: AccountsService) {}

  @Get()
  balances(): Record<string, number> {
    return this.accounts.balances();
  }

  @Post(':from/transfer/:to/:amount')
  transfer(
    @Param('from') from: string,
    @Param('to') to: string,
    @Param('amount', ParseIntPipe) amount: number,
  ): Promise<Record<string, number>> {
    return this.accounts.transfer(from, to, amount);
  }
}
