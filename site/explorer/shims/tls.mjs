/** Connections of ioredis may be one. Those of the simulation are not. */
export class TLSSocket {}
