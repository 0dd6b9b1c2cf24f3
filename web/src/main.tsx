// The page's first line of code. The script stands in <head> and runs before anything is painted, so a chosen theme
// never flashes; the page itself starts when the document is there.
import { render } from 'preact';
import { Session } from './session';
import { App, applyTheme } from './view/app';

const session = new Session();
applyTheme(session);

document.addEventListener('DOMContentLoaded', () => {
  render(<App session={session} />, document.getElementById('app')!);
  void session.watchServer();
});
