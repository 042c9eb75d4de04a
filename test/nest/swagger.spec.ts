import { Body, Controller, Post } from '@nestjs/common';
import { ApiProperty, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockStoreUnavailableError, WithLock } from 'nestjs-holdfast';
import { ApiLockConflict } from 'nestjs-holdfast/swagger';
import { closeHttpApps, CONFLICT, startHttpApp } from './http-app.js';

class Problem {
  @ApiProperty()
  readonly title!: string;
}

/** Defined by each test: a decorator does its work when a class is defined. */
function defineControllers() {
  @Controller('above')
  class Above {
    @ApiLockConflict()
    @Post()
    @WithLock('order')
    async pay(): Promise<string> {
      return 'paid';
    }
  }

  @ApiLockConflict()
  @Controller('beneath')
  class Beneath {
    @WithLock('order')
    @Post()
    async pay(@Body() _order: object): Promise<string> {
      return 'paid';
    }
  }

  @Controller('own')
  class Own {
    @Post()
    @WithLock('order')
    @ApiLockConflict({ conflict: { type: Problem }, unavailable: { description: 'Later.' } })
    async pay(): Promise<string> {
      return 'paid';
    }
  }

  return [Above, Beneath, Own];
}

afterEach(closeHttpApps);

async function start() {
  const http = await startHttpApp({ controllers: defineControllers() });
  const document = SwaggerModule.createDocument(http.app, new DocumentBuilder().build());
  const responsesOf = (path: string) => document.paths[path]?.post?.responses as any;
  return { ...http, document, responsesOf };
}

describe('@ApiLockConflict', () => {
  it.each(['/above', '/beneath'])('documents 409 and 503 with their bodies (%s)', async (path) => {
    const { responsesOf } = await start();
    const responses = responsesOf(path);
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['409', '503']));
    const bodyOf = (statusCode: number, message: string, error: string, codes: string[]) => ({
      type: 'object',
      required: ['statusCode', 'message', 'error', 'code'],
      properties: {
        statusCode: { type: 'integer', enum: [statusCode] },
        message: { type: 'string', example: message },
        error: { type: 'string', example: error },
        code: { type: 'string', enum: codes, example: codes[0] },
      },
    });
    const headers = {
      'Retry-After': {
        description:
          'The number of seconds after which another try may succeed. Missing where it would not.',
        schema: { type: 'integer' },
      },
    };
    expect(responses['409']).toEqual({
      description:
        'Somebody else is working on this right now, or the lock was lost while the work ran.',
      headers,
      content: {
        'application/json': {
          schema: bodyOf(409, CONFLICT.message, 'Conflict', [
            'LOCK_NOT_ACQUIRED',
            'LOCK_LOST',
            'LOCK_REPLACED',
            'LOCK_NOT_ATTACHED',
            'LOCK_FENCED',
            'LOCK_DEADLOCK',
            'WORK_EXHAUSTED',
          ]),
        },
      },
    });
    const outages = ['LOCK_STORE_UNAVAILABLE', 'LOCK_SERVICE_CLOSED'];
    const { message } = new LockStoreUnavailableError({
      operation: 'acquire',
      keys: [],
      nodes: [],
    }).getResponse();
    expect(responses['503']).toEqual({
      description: 'No lock can be taken at the moment.',
      headers,
      content: {
        'application/json': { schema: bodyOf(503, message, 'Service Unavailable', outages) },
      },
    });
  });

  it('says what a client gets', async () => {
    const { responsesOf, locks, post } = await start();
    await locks.acquire('order');
    const { body, status } = await post('/above');
    expect({ body, status }).toEqual({ body: CONFLICT, status: 409 });
    const { required, properties } =
      responsesOf('/above')['409'].content['application/json'].schema;
    expect(Object.keys(body).sort()).toEqual([...required].sort());
    const { statusCode, message, error, code } = properties;
    expect(body).toEqual({
      statusCode: statusCode.enum[0],
      message: message.example,
      error: error.example,
      code: code.example,
    });
  });

  it('takes the schema and the description of an application', async () => {
    const { document, responsesOf } = await start();
    const responses = responsesOf('/own');
    expect(responses['409']).toEqual({
      ...{ description: expect.any(String), headers: expect.any(Object) },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
    });
    expect(document.components?.schemas).toHaveProperty('Problem');
    expect(responses['503'].description).toBe('Later.');
    expect(responses['503'].content['application/json'].schema.properties).toHaveProperty('code');
  });
});
