import { afterEach, describe, expect, it } from '@jest/globals';
import { RedisServer } from '../support/redis-server.js';
import { openStore, request } from './open-store.js';

let ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function start(config: Readonly<Record<string, string>>): Promise<RedisServer> {
  const server = await RedisServer.start({ config });
  ends.push(() => server.stop());
  return server;
}

/** What the log says at the start, and what becomes of a call. */
async function foundOf(server: RedisServer): Promise<object> {
  const { store, warnings } = await openStore({ redis: server.url });
  ends.push(() => store.close());
  const { status } = await store.acquire(request('key'));
  const { nodes } = await store.health();
  return { warnings, status, problem: nodes[0]?.problem };
}

const found = (problem: RegExp, remedy: string): object => ({
  warnings: [expect.stringMatching(new RegExp(`${problem.source}.*${remedy}$`, 's'))],
  status: 'unavailable',
  problem: expect.stringMatching(problem),
});

describe('a server that cannot run the scripts is named at the start, with what to change', () => {
  it.each(['eval', 'evalsha'])('without the command %s', async (command) => {
    const server = await start({ 'rename-command': `${command} ""` });
    const problem = new RegExp(`unknown command '${command}'`);
    const remedy = 'Holdfast needs the commands EVAL and EVALSHA there.';
    expect(await foundOf(server)).toEqual(found(problem, remedy));
  });

  it('without the Lua module, where Lua is one: Valkey 9.1', async () => {
    const server = await start({ 'enable-module-command': 'yes' });
    const hasModule = String(await server.command('MODULE', 'LIST')).includes('lua');
    if (!hasModule) return; // Lua is a part of the server
    await server.command('MODULE', 'UNLOAD', 'lua');
    const problem = /Could not find scripting engine 'lua'/;
    const remedy = 'Holdfast needs Lua scripts: load the module "lua" of Valkey there.';
    expect(await foundOf(server)).toEqual(found(problem, remedy));
  });
});
