import { Body, Controller, Post } from '@nestjs/common';
import { ApiProperty, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { afterEach, describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { ApiLockConflict } from 'nestjs-holdfast/swagger';
import { closeHttpApps, CONFLICT, startHttpApp } from './http-app.js';

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

class Problem {
  @ApiProperty()
  readonly title!: string;
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

afterEach(closeHttpApps);

async function start() {
  const http = await startHttpApp({ controllers: [Above, Beneath, Own] });
  const document = SwaggerModule.createDocument(http.app, new DocumentBuilder().build());
  const responsesOf = (path: string) => document.paths[path]?.post?.responses as any;
  return { ...http, document, responsesOf };
}

describe('@ApiLockConflict', () => {
  it.each(['/above', '/beneath'])('documents 409 and 503 with their bodies (%s)', async (path) => {
    const { responsesOf } = await start();
    const responses = responsesOf(path);
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['409', '503']));
    const { description, headers, content } = responses['409'];
    expect(description).toMatch(/right now/);
    expect(Object.keys(headers)).toEqual(['Retry-After']);
    const { properties } = content['application/json'].schema;
    expect(properties.code.enum).toEqual([
      'LOCK_NOT_ACQUIRED',
      'LOCK_LOST',
      'LOCK_NOT_ATTACHED',
      'LOCK_FENCED',
      'LOCK_DEADLOCK',
      'WORK_EXHAUSTED',
    ]);
    expect(responses['503'].content['application/json'].schema.properties.code.enum).toEqual([
      'LOCK_STORE_UNAVAILABLE',
      'LOCK_SERVICE_CLOSED',
    ]);
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
    expect(responses['409'].content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/Problem',
    });
    expect(document.components?.schemas).toHaveProperty('Problem');
    expect(responses['503'].description).toBe('Later.');
    expect(responses['503'].content['application/json'].schema.properties).toHaveProperty('code');
  });
});
