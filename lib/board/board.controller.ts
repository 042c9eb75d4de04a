import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  NotFoundException,
  Param,
  Post,
  Query,
  Req,
  Res,
  UseGuards,
  VERSION_NEUTRAL,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Subject } from 'rxjs';
import type { LockAdminApi } from '../admin/lock-admin.types.js';
import { getLockServiceToken } from '../nest/tokens.js';
import { systemRuntime } from '../time/runtime.js';
import {
  firstLocks,
  LOCK_BOARD_DATA,
  MOST_LOCKS,
  takeSnapshot,
  type HealthSource,
} from './board-data.js';
import type { LockBoardOptions } from './board-options.js';
import { LiveSnapshots, streamTo } from './live.js';
import readPageFile from './page-files.cjs';
import { PAGE_HEADERS, pageHtml } from './page-html.js';
import { queryLimit, queryText, SameOriginGuard, textOf, type BoardRequest } from './requests.js';

const TYPES: Readonly<Record<string, string>> = {
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
};

interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): void;
}

/** The controller at this path, behind these guards. It answers by itself: interceptors of the application would change what the page reads. */
export function createBoardController(options: LockBoardOptions): Type {
  const { path = 'locks', guards = [], title = 'Locks', user = () => 'board' } = options;
  const files = new Map(Object.keys(TYPES).map((name) => [name, readPageFile(name)]));
  const hash = createHash('sha256');
  for (const text of files.values()) hash.update(text);
  const version = hash.digest('hex').slice(0, 16);

  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  class LockBoardController implements OnModuleDestroy {
    readonly #closing = new Subject<void>();
    readonly #live: LiveSnapshots;
    readonly #host: HttpAdapterHost;
    readonly #data: LockAdminApi;
    readonly #locks: HealthSource;

    constructor(
      @Inject(HttpAdapterHost) host: HttpAdapterHost,
      @Inject(LOCK_BOARD_DATA) data: LockAdminApi,
      @Inject(getLockServiceToken(options.name)) locks: HealthSource,
    ) {
      this.#host = host;
      this.#data = data;
      this.#locks = locks;
      const now = () => new Date(systemRuntime.now().wallMs);
      this.#live = new LiveSnapshots((prefix) => takeSnapshot(data, locks, prefix, now()));
    }

    onModuleDestroy(): void {
      this.#closing.next();
    }

    @Get()
    page(@Req() request: BoardRequest, @Res() response: unknown): void {
      const html = pageHtml(title, request.originalUrl, version);
      this.#send(response, html, { 'Content-Type': 'text/html; charset=utf-8' });
    }

    @Get('assets/:file')
    asset(
      @Param('file') file: string,
      @Query('v') wanted: unknown,
      @Res() response: unknown,
    ): void {
      const text = files.get(file);
      if (text === undefined) throw new NotFoundException();
      // Private: they are behind the guards, and a shared cache is not.
      const cache = wanted === version ? 'private, max-age=31536000, immutable' : 'no-store';
      this.#send(response, text, { 'Content-Type': TYPES[file] ?? '', 'Cache-Control': cache });
    }

    @Get('api/stream')
    stream(@Query('prefix') prefix: unknown, @Res() response: ServerResponse | FastifyReply): void {
      const isFastify = 'raw' in response;
      if (isFastify) response.hijack();
      const raw = isFastify ? response.raw : response;
      streamTo(raw, this.#live.of(queryText(prefix)), PAGE_HEADERS, this.#closing);
    }

    @Get('api/locks')
    async list(
      @Query('prefix') prefix: unknown,
      @Query('limit') limit: unknown,
      @Res() response: unknown,
    ): Promise<void> {
      const most = queryLimit(limit, MOST_LOCKS);
      this.#json(response, await firstLocks(this.#data, queryText(prefix), most));
    }

    /** The key is in the query: Fastify refuses a parameter of more than 100 characters. */
    @Get('api/lock')
    async describe(@Query('key') key: unknown, @Res() response: unknown): Promise<void> {
      this.#json(response, await this.#data.describe(textOf({ key }, 'key')));
    }

    @Get('api/instances')
    async instances(@Res() response: unknown): Promise<void> {
      this.#json(response, await this.#data.instances());
    }

    @Get('api/hot')
    async hot(@Query('limit') limit: unknown, @Res() response: unknown): Promise<void> {
      this.#json(response, await this.#data.hot(queryLimit(limit, 100)));
    }

    @Get('api/health')
    async health(@Res() response: unknown): Promise<void> {
      this.#json(response, await this.#locks.health());
    }

    @Get('api/audit')
    async audit(@Query('limit') limit: unknown, @Res() response: unknown): Promise<void> {
      this.#json(response, await this.#data.audit(queryLimit(limit, 100)));
    }

    /** The key is in the body, so that it stands in no access log. */
    @Post('api/release')
    @HttpCode(200)
    @UseGuards(SameOriginGuard)
    async release(
      @Body() body: unknown,
      @Req() request: BoardRequest,
      @Res() response: unknown,
    ): Promise<void> {
      const key = textOf(body, 'key');
      this.#json(response, { released: await this.#data.release(key, whyOf(body, request)) });
    }

    @Post('api/release-instance')
    @HttpCode(200)
    @UseGuards(SameOriginGuard)
    async releaseInstance(
      @Body() body: unknown,
      @Req() request: BoardRequest,
      @Res() response: unknown,
    ): Promise<void> {
      const id = textOf(body, 'id');
      const keys = await this.#data.releaseInstance(id, whyOf(body, request));
      this.#json(response, { released: keys });
    }

    @Post('api/forget-once')
    @HttpCode(200)
    @UseGuards(SameOriginGuard)
    async forgetOnce(
      @Body() body: unknown,
      @Req() request: BoardRequest,
      @Res() response: unknown,
    ): Promise<void> {
      const key = textOf(body, 'key');
      this.#json(response, { forgotten: await this.#data.forgetOnce(key, whyOf(body, request)) });
    }

    /** Fastify tells the path with a slash at its end from the one without. */
    @Get('*')
    slash(@Req() request: BoardRequest, @Res() response: unknown): void {
      const [asked = ''] = request.originalUrl.split('?');
      if (!asked.endsWith(`${path.replace(/^\/|\/$/g, '')}/`)) throw new NotFoundException();
      this.page(request, response);
    }

    #json(response: unknown, body: unknown): void {
      this.#send(response, JSON.stringify(body), {
        'Content-Type': 'application/json; charset=utf-8',
      });
    }

    #send(response: unknown, body: string, headers: Readonly<Record<string, string>>): void {
      const { httpAdapter } = this.#host;
      for (const [name, value] of Object.entries({ ...PAGE_HEADERS, ...headers }))
        httpAdapter.setHeader(response, name, value);
      httpAdapter.reply(response, body, 200);
    }
  }

  const whyOf = (body: unknown, request: BoardRequest) => ({
    reason: textOf(body, 'reason'),
    by: user(request),
  });

  return LockBoardController;
}
