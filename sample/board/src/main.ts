/**
 * `npm run sample:board`: a shop of three processes that want the same locks, and its page. Every now and then one of them freezes while it
 * holds "stock:count", and the others wait. Free it on the page, and see who gets it, and what the frozen one says when it goes on.
 *
 * The page is in shop.module.ts, what is locked in stock.service.ts; the rest starts and freezes.
 *
 * PORT is that of the page, FREEZE_MS how long a process is frozen.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runToTheEnd, startProgram, startRedis } from '../../../scripts/processes.mjs';

const INSTANCE = fileURLToPath(import.meta.resolve('./instance.js'));
const PORT = process.env.PORT ?? '4300';
const FREEZE_MS = Number(process.env.FREEZE_MS ?? 90_000);
const PROCESSES = 3;

/** Between two freezes. */
const PAUSE_MS = 15_000;

const say = (text: string): void => {
  console.log(`board: ${text}`);
};

/** A process of the shop, and what it says. */
class Shop {
  readonly #process;
  readonly #number: number;
  readonly #waiting = new Map<string, (rest: string) => void>();

  constructor(number: number, env: Readonly<Record<string, string>>, fail: (error: Error) => void) {
    this.#number = number;
    this.#process = startProgram(INSTANCE, env);
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#hear(line));
    this.#process.once('exit', () => fail(new Error(`Process ${number} has ended.`)));
  }

  /** Resolves with the rest of the next line that begins with this word. */
  says(word: string): Promise<string> {
    return new Promise((resolve) => this.#waiting.set(word, resolve));
  }

  freeze(): void {
    this.#process.kill('SIGSTOP');
    say(`process ${this.#number} is frozen, and holds stock:count. Free it on the page`);
  }

  thaw(): void {
    say(`process ${this.#number} goes on`);
    this.#process.kill('SIGCONT');
  }

  #hear(line: string): void {
    const [word = '', ...rest] = line.split(' ');
    if (word === 'open') say(`open ${rest.join(' ')}`);
    if (word === 'lost') say(`process ${this.#number} was told: ${rest.join(' ')}`);
    if (word === 'counts') say(`process ${this.#number} counts the stock`);
    this.#waiting.get(word)?.(rest.join(' '));
    this.#waiting.delete(word);
  }
}

async function run(fail: (error: Error) => void): Promise<never> {
  const log: string[] = [];
  const redisUrl = await startRedis((line) => log.push(line));
  const env = { REDIS_URL: redisUrl };
  const first = new Shop(1, { ...env, BOARD_PORT: PORT }, fail);
  await first.says('open');
  for (const line of log) say(line);
  const others = Array.from(
    { length: PROCESSES - 1 },
    (_, index) => new Shop(index + 2, env, fail),
  );
  say(`${PROCESSES} processes; Ctrl-C ends them`);
  for (;;) {
    for (const shop of others) {
      await shop.says('counts');
      shop.freeze();
      await sleep(FREEZE_MS);
      shop.thaw();
      await sleep(PAUSE_MS);
    }
  }
}

/** Until Ctrl-C, or until a process ends. */
const main = (): Promise<void> => new Promise((_, reject) => void run(reject).catch(reject));

await runToTheEnd('board', main);
