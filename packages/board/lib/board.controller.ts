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
import { ReplaySubject } from 'rxjs';
import {
  LockAdmin,
  type InterventionOutcome,
  type InterventionRequest,
} from 'nestjs-holdfast/admin';
import { BoardData, contentOf } from './board-data.js';
import { LOCK_BOARD_OPTIONS, type LockBoardOptions } from './board-options.js';
import type { BoardKey, BoardSnapshot, View } from './board.types.js';
import { streamTo, type BoardResponse } from './event-stream.js';
import { LiveLooks } from './live.js';
import { pageFile, PAGE_VERSION } from './page-assets.js';
import { PAGE_HEADERS, pageHtml } from './page-html.js';
import { releaseSeveral, type SeveralOutcome } from './release-several.js';
import {
  HostGuard,
  instanceIn,
  lockIn,
  locksIn,
  onceIn,
  operatorOf,
  OwnPageGuard,
  SameOriginGuard,
  textOf,
  viewIn,
  withLockKey,
  type BoardRequest,
} from './requests.js';

/**
 * The page, its files, its data and its actions. It sends by itself what it answers: interceptors of the application would change what
 * the page reads. Guards and filters of the application are asked as everywhere.
 */
abstract class BoardController implements OnModuleDestroy {
  readonly #closing = new ReplaySubject<void>(1);
  readonly #host: HttpAdapterHost;
  readonly #admin: LockAdmin;
  readonly #data: BoardData;
  readonly #options: LockBoardOptions;
  readonly #snapshots: LiveLooks<BoardSnapshot>;
  readonly #keys: LiveLooks<BoardKey>;

  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(LockAdmin) admin: LockAdmin,
    @Inject(BoardData) data: BoardData,
    @Inject(LOCK_BOARD_OPTIONS) options: LockBoardOptions,
  ) {
    this.#host = host;
    this.#admin = admin;
    this.#data = data;
    this.#options = options;
    this.#snapshots = new LiveLooks((view) => data.snapshot(JSON.parse(view) as View), contentOf);
    this.#keys = new LiveLooks((key) => data.key(key), JSON.stringify);
  }

  onModuleDestroy(): void {
    this.#closing.next();
  }

  @Get()
  page(@Req() request: BoardRequest, @Res() response: unknown): void {
    const html = pageHtml(this.#options.title ?? 'Locks', request.originalUrl, PAGE_VERSION);
    this.#send(response, html, { 'Content-Type': 'text/html; charset=utf-8' });
  }

  @Get('assets/:file')
  asset(@Param('file') name: string, @Query('v') wanted: unknown, @Res() response: unknown): void {
    const file = pageFile(name);
    if (file === undefined) throw new NotFoundException();
    // Private: they are behind the guards, and a shared cache is not.
    const isCurrent = wanted === PAGE_VERSION;
    const cache = isCurrent ? 'private, max-age=31536000, immutable' : 'no-store';
    this.#send(response, file.text, { 'Content-Type': file.type, 'Cache-Control': cache });
  }

  /** What is seen of all keys, or of one key. It is in the query: Fastify refuses a parameter of more than 100 characters. */
  @Get('api/stream')
  @UseGuards(OwnPageGuard)
  stream(@Query() query: Readonly<Record<string, unknown>>, @Res() response: BoardResponse): void {
    const events =
      query.key === undefined
        ? { name: 'snapshot', looks: this.#snapshots.of(JSON.stringify(viewIn(query))) }
        : { name: 'key', looks: this.#keys.of(textOf(query, 'key')) };
    streamTo(response, events, PAGE_HEADERS, this.#closing);
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
    const why = await this.#whyOf(body, request);
    this.#sendOutcome(response, await withLockKey(this.#admin.release(lockIn(body), why)));
  }

  /** Several keys for one reason. Those that another holder has by now are left alone. */
  @Post('api/release-several')
  @HttpCode(200)
  @UseGuards(SameOriginGuard)
  async releaseSeveral(
    @Body() body: unknown,
    @Req() request: BoardRequest,
    @Res() response: unknown,
  ): Promise<void> {
    const why = await this.#whyOf(body, request);
    this.#sendOutcome(response, await releaseSeveral(this.#admin, locksIn(body), why));
  }

  @Post('api/release-instance')
  @HttpCode(200)
  @UseGuards(SameOriginGuard)
  async releaseInstance(
    @Body() body: unknown,
    @Req() request: BoardRequest,
    @Res() response: unknown,
  ): Promise<void> {
    const why = await this.#whyOf(body, request);
    this.#sendOutcome(response, await this.#admin.releaseInstance(instanceIn(body), why));
  }

  @Post('api/forget-once')
  @HttpCode(200)
  @UseGuards(SameOriginGuard)
  async forgetOnce(
    @Body() body: unknown,
    @Req() request: BoardRequest,
    @Res() response: unknown,
  ): Promise<void> {
    const why = await this.#whyOf(body, request);
    this.#sendOutcome(response, await withLockKey(this.#admin.forgetOnce(onceIn(body), why)));
  }

  async #whyOf(body: unknown, request: BoardRequest): Promise<InterventionRequest> {
    return { reason: textOf(body, 'reason'), by: await operatorOf(request, this.#options) };
  }

  #sendOutcome(response: unknown, outcome: InterventionOutcome<unknown> | SeveralOutcome): void {
    this.#data.forget();
    const headers = { 'Content-Type': 'application/json; charset=utf-8' };
    this.#send(
      response,
      JSON.stringify(outcome),
      headers,
      outcome.status === 'refused' ? 409 : 200,
    );
  }

  #send(
    response: unknown,
    body: string,
    headers: Readonly<Record<string, string>>,
    status = 200,
  ): void {
    const { httpAdapter } = this.#host;
    for (const [name, value] of Object.entries({ ...PAGE_HEADERS, ...headers }))
      httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, body, status);
  }
}

/** The controller at this path, behind these guards, which answers for these hosts. */
export function boardControllerOf(options: LockBoardOptions): Type {
  const { path = 'locks', guards = [] } = options;
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(new HostGuard(options), ...guards)
  class LockBoardController extends BoardController {
    /** The page at its path with a slash at the end, once `serveSlash` has made a route of it. */
    slash(@Req() request: BoardRequest, @Res() response: unknown): void {
      const [asked = ''] = request.originalUrl.split('?');
      if (!asked.endsWith(`/${path.replace(/^\/|\/$/g, '')}/`)) throw new NotFoundException();
      this.page(request, response);
    }
  }
  return LockBoardController;
}

/**
 * For Fastify, which tells a path from the same one with a slash at its end, and to which Nest gives no path with one: only a wildcard
 * reaches it. Express does not tell them apart, and Nest would warn of the wildcard.
 */
export function serveSlash({ prototype }: Type): void {
  const slash = Object.getOwnPropertyDescriptor(prototype, 'slash');
  if (slash !== undefined) Get('*')(prototype as object, 'slash', slash);
}
