import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { LockKeyError } from 'nestjs-holdfast';
import { detailed } from '../support/detail.js';
import { scriptedService } from '../support/scripted-service.js';

const NONE = 'is not the text of a detached lock: it is none that lock.detach() returns';
const CHANGED = 'is not the text of a detached lock: it was changed, or cut off, on its way. Give';
const UNLIKE =
  'is not the text of a detached lock: what it says is not what lock.detach() writes. Give';

async function detached() {
  const { locks } = scriptedService();
  return (await locks.acquire('key')).detach();
}

/** A text with this content, and the digest that belongs to it. */
function textOf(json: string): string {
  const content = Buffer.from(json).toString('base64url');
  const digest = createHash('sha256').update(content).digest('base64url');
  return `holdfast-lock-1.${content}.${digest}`;
}

const saidBy = (text: string): object =>
  JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()) as object;

/** Is refused with this reason, before the store is asked. */
async function isRefused(text: unknown, why: string): Promise<void> {
  const { locks, store } = scriptedService();
  const attaching = locks.attach(text as string);
  await expect(attaching).rejects.toBeInstanceOf(LockKeyError);
  await expect(attaching).rejects.toEqual(detailed(why));
  expect(store.transferred).toEqual([]);
}

describe('attach', () => {
  it.each<[string, (text: string) => unknown, string]>([
    ['another text', () => 'order:42', `${NONE}. Give`],
    ['that of a later version', (text) => text.replace('-1.', '-2.'), `${NONE}. Give`],
    ['a number', () => 42, `${NONE}, but a value of type number. Give`],
    ['nothing', () => undefined, `${NONE}, but a value of type undefined. Give`],
    ['one that was cut off', (text) => text.slice(0, -1), CHANGED],
    ['its first part alone', () => 'holdfast-lock-1.', CHANGED],
    ['one that goes on', (text) => `${text}.more`, CHANGED],
    ['one that says nothing', () => textOf('null'), UNLIKE],
    ['one that says no JSON', () => textOf('{'), UNLIKE],
  ])('says what is wrong with its text: %s', async (_, change, why) => {
    await isRefused(change(await detached()), why);
  });

  it.each<[string, unknown]>([
    ['keys', 'key'],
    ['keys', ['key', 1]],
    ['keys', []],
    ['place', 1],
    ['mode', ['shared']],
    ['mode', 'limit:0'],
    ['places', 0],
    ['places', 'two'],
    ['autoExtend', 'yes'],
    ['release', 'never'],
    ['fencingToken', -1],
    ['ttlMs', 0.5],
    ['minHoldMs', null],
    ['keptForMs', undefined],
    ['untilMs', 'soon'],
  ])(
    'refuses a text that was made up, with a digest that belongs to it: %s %j',
    async (name, value) => {
      const text = await detached();
      const said = saidBy(text);
      expect(textOf(JSON.stringify(said))).toBe(text);
      await isRefused(textOf(JSON.stringify({ ...said, [name]: value })), UNLIKE);
    },
  );
});
