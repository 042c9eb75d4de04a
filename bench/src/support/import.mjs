/** Prints how many milliseconds it takes to import the package that is named, once Nest and ioredis are imported. */
import 'reflect-metadata';
import '@nestjs/common';
import '@nestjs/core';
import 'ioredis';
import '../../../node_modules/ioredis/built/index.js'; // the one that dist/ finds

const start = performance.now();
await import(process.argv[2]);
console.log(performance.now() - start);
