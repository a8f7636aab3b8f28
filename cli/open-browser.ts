import { spawn } from 'node:child_process';

/** Shows an address of our own server in the person's browser; one that cannot be opened is no failure. */
export function openBrowser(url: string, platform: string = process.platform): void {
  const [command, args]: [string, string[]] =
    platform === 'darwin'
      ? ['open', [url]]
      : platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', url]]
        : ['xdg-open', [url]];
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address is on the terminal too
  child.unref();
}
