import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../session';
import { strings } from '../strings';
import { Composer } from './composer';
import { ChatsDialog, KeyDialog, SettingsDialog, ShortcutsDialog } from './dialogs';
import { useObservable } from './hooks';
import { Flame, KeyboardIcon, MenuIcon, MoonIcon, NewIcon, SettingsIcon, SunIcon } from './icons';
import { Transcript } from './transcript';

type Open = 'chats' | 'settings' | 'shortcuts' | null;

const darkScheme = matchMedia('(prefers-color-scheme: dark)');

export function App({ session }: { session: Session }) {
  useObservable(session);
  const [open, setOpen] = useState<Open>(null);
  const fieldRef = useRef<HTMLTextAreaElement>(null);
  const scrollerRef = useRef<HTMLDivElement>(null);
  const close = (): void => setOpen(null);
  const dark = session.settings.theme === 'system' ? darkScheme.matches : session.settings.theme === 'dark';

  const newChat = (): void => {
    session.newChat();
    fieldRef.current?.focus();
  };

  useLayoutEffect(() => {
    applyTheme(session);
    document.title = session.chat.title === '' ? strings.product : `${session.chat.title} · ${strings.product}`;
  });
  // Before the first paint: a key pressed at once must not be lost.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.isComposing || document.querySelector('dialog[open]') !== null) return;
      const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea');
      const mod = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      const actions: Record<string, () => void> = mod
        ? { k: newChat, b: () => setOpen('chats'), ',': () => setOpen('settings') }
        : {
            Escape: () => session.stop(),
            F6: () => (typing ? scrollerRef : fieldRef).current?.focus(),
            ...(typing || event.ctrlKey || event.metaKey || event.altKey
              ? {}
              : { '/': () => fieldRef.current?.focus(), '?': () => setOpen('shortcuts') }),
          };
      const action = actions[mod ? event.key.toLowerCase() : event.key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    const save = (): void => session.save();
    const render = (): void => session.notify();
    document.addEventListener('keydown', onKey);
    addEventListener('pagehide', save);
    darkScheme.addEventListener('change', render);
    return () => {
      document.removeEventListener('keydown', onKey);
      removeEventListener('pagehide', save);
      darkScheme.removeEventListener('change', render);
    };
  }, []);

  return (
    <>
      <header class="bar">
        <button type="button" class="icon-button" title={strings.chats} aria-label={strings.chats} onClick={() => setOpen('chats')}>
          <MenuIcon />
        </button>
        <h1 class="brand"><Flame /> <span>{strings.product}</span></h1>
        <ServerBadge session={session} />
        <button type="button" class="icon-button" title={strings.newChat} aria-label={strings.newChat} onClick={newChat}>
          <NewIcon />
        </button>
        <button type="button" class="icon-button wide-only" title={strings.shortcutsTitle} aria-label={strings.shortcutsTitle}
          onClick={() => setOpen('shortcuts')}>
          <KeyboardIcon />
        </button>
        <button type="button" class="icon-button" title={strings.themeToggle(dark ? strings.themes.light : strings.themes.dark)}
          aria-label={strings.themeToggle(dark ? strings.themes.light : strings.themes.dark)}
          onClick={() => session.change({ theme: dark ? 'light' : 'dark' })}>
          {dark ? <SunIcon /> : <MoonIcon />}
        </button>
        <button type="button" class="icon-button" title={strings.settings} aria-label={strings.settings} onClick={() => setOpen('settings')}>
          <SettingsIcon />
        </button>
      </header>
      <Transcript session={session} scrollerRef={scrollerRef} />
      <Composer session={session} fieldRef={fieldRef} onShortcuts={() => setOpen('shortcuts')} />
      <div class="hidden" role="status" aria-live="polite">{session.announcement}</div>
      {open === 'chats' && <ChatsDialog session={session} onClose={close} />}
      {open === 'settings' && <SettingsDialog session={session} onClose={close} />}
      {open === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      {session.keyAsked && <KeyDialog session={session} />}
    </>
  );
}

export function applyTheme(session: Session): void {
  const { theme } = session.settings;
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function ServerBadge({ session }: { session: Session }) {
  const { model, server } = session;
  const text = {
    unknown: strings.connecting,
    ready: model?.id ?? '',
    starting: strings.starting,
    offline: strings.offline,
    key: strings.needsKey,
  }[server];
  const context = model?.contextTokens ? strings.contextOf(model.contextTokens) : '';
  return (
    <div class={`badge ${server}`} title={server === 'ready' ? `${text}\n${context}` : text}>
      <span class="badge-text">{text}</span>
      {server === 'ready' && context !== '' && <span class="badge-context">{context}</span>}
    </div>
  );
}
