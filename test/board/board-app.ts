import type { CanActivate, INestApplication, ModuleMetadata } from '@nestjs/common';
import { LockBoardModule, type LockBoardOptions } from '@nestjs-holdfast/board';
import type { BoardKey, BoardSnapshot } from '../../packages/board/lib/board.types.js';
import { startHttpApp, type AdapterName, type HttpApp } from '../nest/http-app.js';

interface Settings {
  readonly adapter: AdapterName;
  readonly board?: LockBoardOptions;
  readonly parts?: ModuleMetadata;
  readonly forceCloseConnections?: boolean;
  readonly configure?: (app: INestApplication) => void;
}

/** For the administrators of a test: the header `role: admin`. */
export class AdminGuard implements CanActivate {
  canActivate: CanActivate['canActivate'] = (context) =>
    context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers.role ===
    'admin';
}

/** An application with the page, which nobody guards unless the options say so. */
export const startBoard = ({
  adapter,
  board = { unguarded: true },
  parts = {},
  forceCloseConnections = true,
  configure,
}: Settings): Promise<HttpApp> =>
  startHttpApp(
    { ...parts, imports: [...(parts.imports ?? []), LockBoardModule.forRoot(board)] },
    { adapter, forceCloseConnections, ...(configure && { configure }) },
  );

/** The headers that the page sends with what it does. */
export const fromPage = (url: string): Record<string, string> => ({
  'content-type': 'application/json',
  'x-holdfast-board': '1',
  origin: new URL(url).origin,
});

interface StreamEvents {
  readonly snapshot: BoardSnapshot;
  readonly key: BoardKey;
  readonly beat: object;
}

/** A client of the events, as a browser is one. */
export class EventClient {
  readonly #abort = new AbortController();
  #reader: ReadableStreamDefaultReader<string> | undefined;
  #text = '';

  /** Resolves with the status of the response. */
  async open(address: string): Promise<number> {
    const response = await fetch(address, { signal: this.#abort.signal });
    this.#reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    return response.status;
  }

  /** The next event of this name, others are passed over; its dates are texts. Rejects when the stream ends before. */
  async next<Name extends keyof StreamEvents>(name: Name): Promise<StreamEvents[Name]> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end < 0) {
        if (!(await this.#read())) throw new Error(`The stream ended without "${name}".`);
        continue;
      }
      const [event, data] = ['event', 'data'].map((field) =>
        new RegExp(`^${field}: (.*)$`, 'm').exec(this.#text.slice(0, end))?.at(1),
      );
      this.#text = this.#text.slice(end + 2);
      if (event === name) return JSON.parse(data ?? '') as StreamEvents[Name];
    }
  }

  /** Resolves when the application has ended the stream. */
  async ended(): Promise<void> {
    while (await this.#read());
  }

  /** Goes away. */
  close(): void {
    this.#abort.abort();
  }

  async #read(): Promise<boolean> {
    const { done = true, value = '' } = (await this.#reader?.read()) ?? {};
    this.#text += value;
    return !done;
  }
}
