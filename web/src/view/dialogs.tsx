// Everything that opens over the page: chats, settings, shortcuts, the key. Native dialogs: focus stays inside, Esc
// and a click beside them close them, focus returns to where it was.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../session';
import { listChats, type Theme } from '../storage';
import { strings } from '../strings';
import { useObservable } from './hooks';
import { CloseIcon, NewIcon, TrashIcon } from './icons';

export function Modal({ kind, title, onClose, children }: {
  kind: string;
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const gone = useRef(false);
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => {
      gone.current = true; // its own late close event is no wish to close what may be open by then
      dialog.close();
    };
  }, []);
  return (
    <dialog ref={ref} class={`modal ${kind}`} aria-labelledby={`${kind}-title`} onClose={() => { if (!gone.current) onClose(); }}
      onClick={(event) => { if (event.target === ref.current) ref.current!.close(); }}>
      <div class="modal-body">
        <header class="modal-head">
          <h2 id={`${kind}-title`}>{title}</h2>
          <button type="button" class="icon-button" aria-label={strings.close} title={strings.close}
            onClick={() => ref.current!.close()}>
            <CloseIcon />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
function when(ms: number): string {
  return new Date(ms).toDateString() === new Date().toDateString() ? time.format(ms) : day.format(ms);
}

export function ChatsDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  useObservable(session);
  const [entries, setEntries] = useState(() => { session.save(); return listChats(); });
  return (
    <Modal kind="drawer" title={strings.chats} onClose={onClose}>
      <button type="button" class="button wide" onClick={() => { session.newChat(); onClose(); }}>
        <NewIcon /> {strings.newChat}
      </button>
      {entries.length === 0 && <p class="quiet">{strings.noChats}</p>}
      <ul class="chat-list">
        {entries.map((entry) => (
          <li key={entry.id}>
            <button type="button" class="chat-open" aria-current={entry.id === session.chat.id ? 'true' : undefined}
              onClick={() => { session.openChat(entry.id); onClose(); }}>
              <span class="chat-title">{entry.title || strings.untitled}</span>
              <span class="chat-when">{when(entry.updatedMs)}</span>
            </button>
            <button type="button" class="icon-button small" title={strings.deleteChat(entry.title)}
              aria-label={strings.deleteChat(entry.title)}
              onClick={() => { session.deleteChat(entry.id); setEntries(listChats()); }}>
              <TrashIcon />
            </button>
          </li>
        ))}
      </ul>
    </Modal>
  );
}

export function SettingsDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  useObservable(session);
  const { settings } = session;
  const defaults = session.model?.defaults ?? { temperature: null, topP: null, maxTokens: null };
  const changed = settings.temperature !== null || settings.topP !== null || settings.maxTokens !== null;
  return (
    <Modal kind="settings" title={strings.settings} onClose={onClose}>
      <label class="field">
        <span class="field-name">{strings.systemPrompt}</span>
        <textarea rows={4} value={settings.systemPrompt} placeholder={strings.systemPromptExample}
          onInput={(event) => session.change({ systemPrompt: event.currentTarget.value })} />
        <span class="field-hint">{strings.systemPromptHint}</span>
      </label>
      <Slider name={strings.temperature} hint={strings.temperatureHint} value={settings.temperature} low={0} high={2}
        step={0.05} fallback={defaults.temperature} onChange={(temperature) => session.change({ temperature })} />
      <Slider name={strings.topP} hint={strings.topPHint} value={settings.topP} low={0.05} high={1} step={0.05}
        fallback={defaults.topP} onChange={(topP) => session.change({ topP })} />
      <label class="field">
        <span class="field-name">{strings.maxTokens}</span>
        <input type="number" min={1} step={1} inputMode="numeric" placeholder={strings.serverDefault(defaults.maxTokens)}
          value={settings.maxTokens ?? ''}
          onInput={(event) => {
            const value = Math.floor(event.currentTarget.valueAsNumber);
            session.change({ maxTokens: value >= 1 ? value : null });
          }} />
      </label>
      <button type="button" class="button" disabled={!changed}
        onClick={() => session.change({ temperature: null, topP: null, maxTokens: null })}>
        {strings.reset}
      </button>
      <fieldset class="field">
        <legend class="field-name">{strings.theme}</legend>
        <div class="segments">
          {(Object.keys(strings.themes) as Theme[]).map((theme) => (
            <label key={theme}>
              <input type="radio" name="theme" value={theme} checked={settings.theme === theme}
                onChange={() => session.change({ theme })} />
              <span>{strings.themes[theme]}</span>
            </label>
          ))}
        </div>
      </fieldset>
      {session.hasKey && (
        <button type="button" class="button" onClick={() => session.forgetKey()}>{strings.keyForget}</button>
      )}
      <p class="quiet small-print">{strings.settingsNote} <a href="/licenses.txt" target="_blank">{strings.licences}</a></p>
    </Modal>
  );
}

function Slider({ name, hint, value, low, high, step, fallback, onChange }: {
  name: string;
  hint: string;
  value: number | null;
  low: number;
  high: number;
  step: number;
  fallback: number | null; // what the server takes while nothing is set
  onChange: (value: number) => void;
}) {
  return (
    <label class={value === null ? 'field is-default' : 'field'}>
      <span class="field-name">{name} <span class="field-value">{value === null ? strings.serverDefault(fallback) : value.toFixed(2)}</span></span>
      <input type="range" min={low} max={high} step={step} value={value ?? fallback ?? 1}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)} />
      <span class="field-hint">{hint}</span>
    </label>
  );
}

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const mod = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';
  return (
    <Modal kind="shortcuts" title={strings.shortcutsTitle} onClose={onClose}>
      <dl class="shortcut-list">
        {strings.shortcuts(mod).map(([keys, what]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}

export function KeyDialog({ session }: { session: Session }) {
  const [key, setKey] = useState('');
  return (
    <Modal kind="key" title={strings.keyTitle} onClose={() => { if (session.keyAsked) session.dismissKey(); }}>
      <form onSubmit={(event) => { event.preventDefault(); if (key.trim() !== '') session.giveKey(key.trim()); }}>
        <p>{session.keyWrong ? strings.keyWrong : strings.keyText}</p>
        <label class="field">
          <span class="field-name">{strings.keyLabel}</span>
          <input type="password" value={key} autocomplete="off" autofocus onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <button type="submit" class="button primary" disabled={key.trim() === ''}>{strings.keySave}</button>
      </form>
    </Modal>
  );
}
