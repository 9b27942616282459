// Drives Graphile Worker for one measurement: one JSON command a line on standard input, one answer
// a line on standard output. bench/peers/README.md tells the commands; bench/peers/dialog.py sends
// them. It works in its batching configuration. Times are nanoseconds of CLOCK_MONOTONIC, which
// every process of this host shares.

import { openSync, writeFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { Logger, makeWorkerUtils, run, WorkerPreset } from "graphile-worker";

const CONCURRENCY = 100;
const CHUNK = 5000; // jobs in one call of addJobs
const url = process.argv[2];
const now = () => process.hrtime.bigint();
const preset = {
  extends: [WorkerPreset],
  worker: {
    connectionString: url,
    concurrentJobs: CONCURRENCY,
    maxPoolSize: 10,
    preparedStatements: true,
    localQueue: { size: Math.max(100, 10 * CONCURRENCY) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: new Logger(() => () => {}),
  },
};
const answer = (fields) => writeSync(1, JSON.stringify(fields) + "\n");

let opened;
const utils = () => (opened ??= makeWorkerUtils({ preset }));

async function install() {
  await (await utils()).migrate();
  answer({});
}

async function fill({ kind, jobs }) {
  const { addJobs } = await utils();
  const began = now();
  for (let done = 0; done < jobs; done += CHUNK) {
    const size = Math.min(CHUNK, jobs - done);
    await addJobs(Array.from({ length: size }, () => ({ identifier: kind, payload: {} })));
  }
  answer({ nanoseconds: Number(now() - began) });
}

async function each({ kind, jobs }) {
  const { addJob } = await utils();
  const began = now();
  for (let done = 0; done < jobs; done += 1) await addJob(kind, {});
  answer({ nanoseconds: Number(now() - began) });
}

async function put({ kind }) {
  await (await utils()).addJob(kind, {});
  answer({ committed: Number(now()) });
}

async function work({ starts, stamps, expected }) {
  const taken = new BigInt64Array(Math.max(1, expected));
  let calls = 0;
  const file = openSync(stamps, "a");
  const noop = () => {
    taken[calls] = now();
    calls += 1;
    if (calls === expected) {
      writeFileSync(starts, Buffer.from(taken.buffer));
      answer({ called: calls });
    }
  };
  const stamp = () => {
    writeSync(file, Buffer.from(BigInt64Array.of(now()).buffer));
  };
  await run({ preset, taskList: { noop, stamp } });
  answer({ ready: true });
}

const commands = { install, fill, each, put, work };
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  await commands[command](given);
}
process.exit(0);
