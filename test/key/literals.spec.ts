import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import { parseKeyTemplate } from '../../lib/key/key-template.js';

class OrdersService {
  pay(id: string, mail: string, ...ids: string[]) {
    return [id, mail, ids];
  }
}

const parse = (
  template: string,
  method: (...args: never[]) => unknown = OrdersService.prototype.pay,
) => parseKeyTemplate(template, { where: 'here', method, owner: OrdersService, name: 'pay' });

/** With what is marked as a parameter in capitals, and what is called like one in brackets. */
const literalsOf = (template: string): string[] =>
  parse(template).literals.map(({ word, text, isMarked, isParameter }) => {
    expect(text.slice(1)).toBe(word);
    const shown = isMarked ? text.toUpperCase() : text;
    return isParameter ? `[${shown}]` : shown;
  });

describe('a word of a key that is called like a parameter', () => {
  it.each(['::id', ':id', '/:id', 'order/:id', 'order::id', 'order::id-x', '::id<0>', ':id:mail'])(
    'is refused where a route would have a parameter (%s)',
    (template) => {
      expect(() => parse(template)).toThrow(LockConfigurationError);
      expect(() => parse(template)).toThrow(
        `here: the key ${JSON.stringify(template)} has ":id", which is plain text, so all calls share one lock. Write <id>.`,
      );
    },
  );

  it.each([
    ['order:id', ['[:id]']],
    ['a:id', ['[:id]']],
    ['x:a:id', [':a', '[:id]']],
    ['/.id', ['[.id]']],
    ['order-id', []],
    ['order/id', ['[/id]']],
    ['order id', ['[ id]']],
    ['order\u00b7id', []],
  ])('may be meant as text elsewhere, and is reported (%s)', (template, literals) => {
    expect(literalsOf(template)).toEqual(literals);
  });

  it.each([
    ['order:send-mail', []],
    ['order:mail-send', []],
    ['order:mail<0>', []],
    ['order<0>mail', []],
    ['order:<0>:mail', ['[:mail]']],
    ['id', []],
    ['order:0id', []],
  ])('is a whole segment, or not meant at all (%s)', (template, literals) => {
    expect(literalsOf(template)).toEqual(literals);
  });

  it.each([
    ['the:id:<id>', [':id']],
    ['the:id:<id.number>', [':id']],
    ['the:id:<0>', [':id']],
    ['the:id:<1>', ['[:id]']],
    ['the:id:<request.body.id>', ['[:id]']],
    ['the:ids:<ids.0>', [':ids']],
    ['the:ids:<2>', [':ids']],
    ['the:ids:<id>', ['[:ids]']],
  ])('is only a heading where a placeholder reads the parameter (%s)', (template, literals) => {
    expect(literalsOf(template)).toEqual(literals);
  });

  it('is found in the class, too, when another decorator has wrapped the method', () => {
    const wrapper = (...args: unknown[]) => args;
    const template = parse('the:id:<mail>', wrapper);
    expect(template.literals).toMatchObject([{ word: 'id', isParameter: true }]);
    expect(parse('the:id:<id>', wrapper).literals).toMatchObject([{ isParameter: false }]);
  });
});

describe('a word of a key that is not called like a parameter', () => {
  it('is reported as a route would write it, for the routes to look at', () => {
    expect(literalsOf('/:order/:item:x')).toEqual([':ORDER', ':ITEM', ':x']);
  });
});
