// Checks Dockerfile and docker-compose.yml without a container engine: by a linter, and against the tree they name.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { parse } from 'yaml';
import { ROOT } from './launch/home.mjs';

const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);
const read = (name) => readFileSync(join(ROOT, name), 'utf8');

checkDockerfile(read('Dockerfile'), read('.dockerignore'));
checkCompose(read('docker-compose.yml'));
if (faults.length > 0) {
  console.log(faults.join('\n'));
  process.exit(1);
}

function checkDockerfile(text, ignoreText) {
  for (const problem of validate(text)) fault(`Dockerfile:${problem.range.start.line + 1}`, problem.message);
  const file = DockerfileParser.parse(text);
  const stages = file.getFROMs().map((from) => from.getBuildStage());
  for (const from of file.getFROMs()) requirePinned('Dockerfile', from.getImage());
  for (const copy of file.getCOPYs()) checkCopy(copy, stages, ignoreText);
  const copied = file.getCOPYs().flatMap((copy) => copy.getArguments().map(String));
  for (const name of ['docs/reference/openapi.json', 'docs/reference/openapi.html']) {
    if (!copied.includes(name)) fault('Dockerfile', `${name} must be copied: the api serves it`);
  }

  const keywords = (name) => file.getInstructions().filter((each) => each.getKeyword() === name);
  const user = keywords('USER').at(-1)?.getArgumentsContent();
  if (!user || /^(root|0)(:|$)/.test(user)) fault('Dockerfile', 'the last USER must not be root');
  if (file.getHEALTHCHECKs().length !== 1) fault('Dockerfile', 'one HEALTHCHECK is needed');
  const command = keywords('CMD').at(-1)?.getArgumentsContent() ?? '';
  if (!command.startsWith('['))
    fault('Dockerfile', 'CMD must be a list: a shell in between swallows SIGTERM');
  else checkCommand('Dockerfile CMD', JSON.parse(command));
  for (const health of file.getHEALTHCHECKs()) {
    if (/\b(npm|curl|wget)\b/.test(health.getArgumentsContent()))
      fault('Dockerfile', 'HEALTHCHECK may use node only');
  }
}

function checkCopy(copy, stages, ignoreText) {
  const args = copy.getArguments().map(String);
  const where = `Dockerfile:${copy.getRange().start.line + 1}`;
  const stage = copy.getFromFlag()?.getValue();
  if (stage !== undefined) {
    if (!stages.includes(stage)) fault(where, `there is no stage ${stage}`);
    return;
  }
  // The ignore file keeps out everything that it does not name.
  const letIn = new Set(
    ignoreText
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1)),
  );
  for (const source of args.slice(0, -1)) {
    if (!existsSync(join(ROOT, source))) fault(where, `${source} does not exist`);
    if (!letIn.has(source)) fault(where, `.dockerignore keeps ${source} out`);
  }
}

function checkCompose(text) {
  const where = 'docker-compose.yml';
  for (const [use, name, rest] of text.matchAll(/\$\{(\w+)([^}]*)\}/g)) {
    if (/PASSWORD|SECRET|_KEY$/.test(name) && !rest.startsWith(':?'))
      fault(where, `${use} must be required by :?`);
    if (!/^:[?-]/.test(rest)) fault(where, `${use} needs a default or :?`);
  }
  const { services, volumes } = parse(text, { merge: true });
  for (const [name, service] of Object.entries(services)) {
    checkService(`${where} ${name}`, service, services, volumes ?? {});
  }
  for (const name of ['postgres', 'migrate', 'api', 'dispatcher']) {
    if (!services[name]) fault(where, `service ${name} is missing`);
  }
  requireDependency(services, 'migrate', 'postgres', 'service_healthy');
  for (const name of ['api', 'dispatcher']) {
    requireDependency(services, name, 'migrate', 'service_completed_successfully');
    const grace = /^(\d+)s$/.exec(services[name]?.stop_grace_period ?? '');
    if (!grace || Number(grace[1]) < 25) fault(where, `${name} needs a stop_grace_period of 25s or more`);
  }
  if (!services.postgres?.healthcheck?.test) fault(where, 'postgres needs a health check');
  if (services.migrate?.restart !== 'no') fault(where, 'migrate must run once');
}

function checkService(where, service, services, volumes) {
  if (!service.build) requirePinned(where, service.image ?? '');
  if (service.command) checkCommand(where, service.command);
  if ((service.deploy?.replicas ?? 1) > 1 && service.ports)
    fault(where, 'replicas cannot share a published port');
  for (const port of service.ports ?? []) {
    if (!port.startsWith('127.0.0.1:')) fault(where, `port ${port} is published to everyone`);
  }
  for (const volume of service.volumes ?? []) {
    const [name] = volume.split(':');
    if (/^\w/.test(name) && !(name in volumes)) fault(where, `volume ${name} is not declared`);
  }
  for (const name of Object.keys(service.depends_on ?? {})) {
    if (!services[name]) fault(where, `depends on ${name}, which does not exist`);
  }
}

function checkCommand(where, [program, entry]) {
  if (program !== 'node') fault(where, `runs ${program}: containers run node, which hears SIGTERM, not npm`);
  if (!entry || !existsSync(join(ROOT, entry))) fault(where, `${entry} is not in the build`);
}

function requireDependency(services, name, on, condition) {
  if (services[name]?.depends_on?.[on]?.condition === condition) return;
  fault('docker-compose.yml', `${name} must wait for ${on} (${condition})`);
}

function requirePinned(where, image) {
  if (!/:\d+\.\d+[\w.-]*$/.test(image)) fault(where, `image "${image}" must name an exact version`);
}
