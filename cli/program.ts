import { Command, CommanderError, Option } from 'commander';
import type { ApprovalCommand, ApprovalFlags } from './approvals.ts';
import type { ChatFlags } from './chat.ts';
import type { DoctorFlags } from './doctor.ts';
import { exitCodeOf, explain } from './explain.ts';
import { ExitCode, type Io, line } from './io.ts';
import type { Product } from './product.ts';
import type { ResourceCommand, ResourceFlags } from './resources.ts';
import type { RunFlags } from './run.ts';
import type { ServeFlags } from './serve.ts';

const EXAMPLES = `
Examples:
  parley serve                            the server and its page on http://127.0.0.1:3000
  parley worlds list                      what worlds there are; the first start makes a demo world
  parley run demo "plan a tea party"      one message, the agents' answers on standard output
  echo "and now?" | parley run demo --json
  parley chat demo                        talk to the agents of a world
  parley approvals list                   what waits for your decision
  parley approvals answer ID yes          decide it
  parley doctor                           what is set up, what is not, and what to do

Exit codes: 0 done, 1 failed, 2 wrong use, 3 an approval was needed and not given, 4 a limit was reached, 130 interrupted.`;

const WHERE = `
Works with the server that runs on the data directory, or on the data directory by itself.`;

const RUN_HELP = `
Without a message it is read from standard input.

Approvals: only what this message leads to is decided. --approve yes allows tools and new agents, but cannot answer an
agent's question. Without a terminal, --approve ask waits for somebody else at the server. After 5 minutes without an
answer it is a no. The exit code is 3 where an approval was needed and not given.
${WHERE}`;

const CHAT_HELP = `
What an agent asks is shown whole, and the prompt then says what it takes: y, n, n REASON or the number of an option.
Any other text stays a message; so does everything typed at an ordinary prompt. /help shows the commands.
Lines of a pipe are taken one after another; the exit code is 3 where something still waits at their end.
${WHERE}`;

type Run = (work: () => Promise<ExitCode>) => Promise<void>;

/** Parses the command line, does what it says and returns the exit code. Never throws. */
export async function runCommandLine(product: Product, io: Io, args: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = ExitCode.done;
  const run: Run = async (work) => {
    code = await work();
  };
  const program = build(product, io, run);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.usage;
    line(io.stderr, `parley: ${explain(error)}`);
    if (args.includes('--verbose') && error instanceof Error) line(io.stderr, error.stack ?? '');
    return exitCodeOf(error);
  }
}

function build(product: Product, io: Io, run: Run): Command {
  const program = new Command('parley')
    .description('A server where people and LLM agents talk in shared worlds.')
    .version(product.version)
    .showHelpAfterError('(parley --help shows what there is)')
    .addHelpText('after', EXAMPLES)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? 100,
      getErrHelpWidth: () => io.stderr.columns ?? 100,
    });
  addServe(program, product, io, run);
  addConversations(program, product, io, run);
  addResources(program, product, io, run);
  addApprovals(program, product, io, run);
  addDoctor(program, product, io, run);
  return program;
}

const DATA = ['--data <dir>', 'data directory (PARLEY_DATA, default ~/.parley)'] as const;
const VERBOSE = ['--verbose', 'log more, and show where an unexpected error came from'] as const;

function addServe(program: Command, product: Product, io: Io, run: Run): void {
  program
    .command('serve')
    .description('start the server and the web page')
    .option('--port <number>', 'port, 0 picks a free one (PARLEY_PORT, default 3000)')
    .option('--host <address>', 'address to listen on (PARLEY_HOST, default 127.0.0.1)')
    .option(...DATA)
    .option('--open', 'show the page in a browser')
    .option('--no-auth', 'ask for no token; on a loopback address only')
    .option(...VERBOSE)
    .action((flags: ServeFlags) => run(async () => (await import('./serve.ts')).serve(product, io, flags)));
}

/** A command that works on a server or on the data directory. */
function client(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage)
    .description(description)
    .option(...DATA)
    .option('--server <url>', 'the server to use; without it the one that runs on the data directory')
    .option('--token <token>', 'its access token (PARLEY_TOKEN, else the data directory’s own)')
    .option(...VERBOSE);
}

function addConversations(program: Command, product: Product, io: Io, run: Run): void {
  client(program, 'run <world> [message]', 'send one message and print the answers')
    .option('--agent <id>', 'address this agent and no other')
    .option('--chat <id>', 'go on in this chat; without it a new one')
    .addOption(
      new Option(
        '--approve <mode>',
        'decide what agents ask for: yes, no or ask; else ask on a terminal, no elsewhere',
      ).choices(['yes', 'no', 'ask']),
    )
    .option('--timeout <seconds>', 'stop the agents after this time')
    .option('--json', 'print one JSON object at the end')
    .addHelpText('after', RUN_HELP)
    .action((world: string, message: string | undefined, flags: RunFlags) =>
      run(async () => (await import('./run.ts')).run(product, io, world, message, flags)),
    );
  client(program, 'chat <world>', 'talk to a world; Ctrl-C stops the agents, Ctrl-D leaves')
    .option('--chat <id>', 'go on in this chat; without it a new one')
    .addHelpText('after', CHAT_HELP)
    .action((world: string, flags: ChatFlags) =>
      run(async () => (await import('./chat.ts')).chat(product, io, world, flags)),
    );
}

interface Group {
  name: string;
  about: string;
  /** Usage of each command after its name. */
  commands: [command: string, usage: string, about: string][];
}

const GROUPS: Group[] = [
  {
    name: 'worlds',
    about: 'rooms with agents and chats',
    commands: [
      ['list', '', 'all worlds'],
      ['show', '<world>', 'its settings, agents and chats'],
      ['create', '<name>', 'make a world and print its id'],
      ['delete', '<world>', 'delete it with its agents and chats'],
    ],
  },
  {
    name: 'agents',
    about: 'who answers in a world',
    commands: [
      ['list', '<world>', 'the agents of a world'],
      ['show', '<world> <agent>', 'its settings'],
      ['create', '<world> <name>', 'make an agent and print its id'],
      ['delete', '<world> <agent>', 'remove it from the world'],
    ],
  },
  {
    name: 'chats',
    about: 'conversations of a world',
    commands: [
      ['list', '<world>', 'the chats of a world'],
      ['show', '<world> <chat>', 'its newest messages'],
      ['create', '<world>', 'start a chat and print its id'],
      ['delete', '<world> <chat>', 'delete it with its messages'],
    ],
  },
];

function addResources(program: Command, product: Product, io: Io, run: Run): void {
  for (const { name, about, commands } of GROUPS) {
    const group = program.command(name).description(about);
    for (const [command, usage, aboutCommand] of commands) {
      const full = `${name} ${command}`;
      const built = client(group, `${command} ${usage}`.trim(), aboutCommand).option('--json', 'print JSON');
      for (const option of optionsOf(full)) built.addOption(option);
      built.addHelpText('after', WHERE).action((...given: unknown[]) => {
        const ids = given.slice(0, -2).map(String);
        const flags = given.at(-2) as ResourceFlags;
        return run(async () =>
          (await import('./resources.ts')).resource(product, io, full as ResourceCommand, ids, flags),
        );
      });
    }
  }
}

function addApprovals(program: Command, product: Product, io: Io, run: Run): void {
  const group = program.command('approvals').description('what agents ask people to decide');
  const add = (command: ApprovalCommand, usage: string, about: string) =>
    client(group, `${command} ${usage}`.trim(), about)
      .option('--world <id>', command === 'list' ? 'of this world; else of all' : 'its world; else all are searched')
      .option('--json', 'print JSON')
      .addHelpText('after', WHERE)
      .action((...given: unknown[]) => {
        const ids = given.slice(0, -2).flatMap((id) => (id === undefined ? [] : [String(id)]));
        const flags = given.at(-2) as ApprovalFlags;
        return run(async () => (await import('./approvals.ts')).approvals(product, io, command, ids, flags));
      });
  add('list', '', 'what waits').option(
    '--status <status>',
    'pending, answered, denied, expired or cancelled',
    'pending',
  );
  add('show', '<id>', 'the whole of what is asked, and how it was decided');
  add('answer', '<id> [option]', 'decide; the first valid answer wins')
    .option('--text <text>', 'a reason, a result, or the answer in your own words')
    .option('--remember <scope>', 'keep a yes for the same call: once, chat, agent or world', 'once')
    .addOption(
      new Option('--answer <question=option>', 'for several questions: one for each, an option or words').argParser(
        (pair: string, pairs: string[] = []) => [...pairs, pair],
      ),
    )
    .option('--skip', 'refuse to answer');
}

function optionsOf(command: string): Option[] {
  const description = new Option('--description <text>', 'one line about it');
  const set = new Option('--set <name=value>', 'any other setting, as in the API; may be repeated').argParser(
    (pair: string, pairs: string[] = []) => [...pairs, pair],
  );
  switch (command) {
    case 'worlds create':
      return [description, set];
    case 'agents create':
      return [
        description,
        new Option('--provider <id>', 'anthropic, openai, openai-compatible, ollama or script; else the world’s'),
        new Option('--model <name>', 'the provider’s name of the model; else the world’s'),
        new Option('--prompt <text>', 'system prompt'),
        new Option('--prompt-file <path>', 'file with the system prompt'),
        set,
      ];
    case 'chats create':
      return [new Option('--title <text>', 'else the first message gives it')];
    case 'chats show':
      return [new Option('--limit <number>', 'how many messages, at most 500').default('50')];
    default:
      return command.endsWith(' delete') ? [new Option('--yes', 'do not ask')] : [];
  }
}

function addDoctor(program: Command, product: Product, io: Io, run: Run): void {
  program
    .command('doctor')
    .description('check what is set up and say what to do about the rest; changes nothing')
    .option(...DATA)
    .option('--online', 'also try each model provider that is connected')
    .option('--json', 'print JSON')
    .option(...VERBOSE)
    .action((flags: DoctorFlags) => run(async () => (await import('./doctor.ts')).doctor(product, io, flags)));
}
