/**
 * `npm run sample:transports`: one locked operation over HTTP, GraphQL, gRPC and WebSocket, and what the client of each sees: when it is
 * done, and when somebody else is at it.
 */
import { fileURLToPath } from 'node:url';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { LockService } from 'nestjs-holdfast';
import { AppModule } from './app.module.js';
import { clientsOf } from './clients.js';

const grpcUrl = process.env.GRPC_URL ?? '127.0.0.1:50051';
const protoPath = fileURLToPath(new URL('../orders.proto', import.meta.url));

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.connectMicroservice<MicroserviceOptions>({
  transport: Transport.GRPC,
  options: { package: 'orders', protoPath, url: grpcUrl },
});
await app.startAllMicroservices();
await app.listen(Number(process.env.PORT ?? 0), '127.0.0.1');

for (const [transport, pay] of Object.entries(clientsOf(await app.getUrl(), grpcUrl, protoPath))) {
  console.log(`transports: ${transport}, free: ${await pay('42')}`);
  await app.get(LockService).run('order:42', async () => {
    console.log(`transports: ${transport}, locked: ${await pay('42')}`);
  });
}
await app.close();
