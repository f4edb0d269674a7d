import process from 'node:process';

/** For a bench's child process: answers what the parent asks by name, says that it is ready, ends with the parent. */
export function answer(handlers) {
  const reply = async ({ id, name, input }) => {
    try {
      process.send({ id, output: await handlers[name](input) });
    } catch (error) {
      process.send({ id, error: error.stack ?? String(error) });
    }
  };
  process.on('message', (message) => void reply(message));
  process.on('disconnect', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
  process.on('SIGINT', () => undefined);
  process.send({ type: 'ready' });
}
