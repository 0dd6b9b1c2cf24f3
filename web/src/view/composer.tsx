// Where a person writes. The one button sends, or stops while an answer runs; focus stays in the field.
import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import type { Session } from '../session';
import { strings } from '../strings';
import { useObservable } from './hooks';
import { SendIcon, StopIcon } from './icons';

// On a touch screen the keyboard has no Shift+Enter: there Enter is a new line and the button sends.
const touchOnly = matchMedia('(hover: none) and (pointer: coarse)');

export function Composer({ session, fieldRef, onShortcuts }: {
  session: Session;
  fieldRef: RefObject<HTMLTextAreaElement | null>;
  onShortcuts: () => void;
}) {
  const { chat } = session;
  useObservable(chat);

  const fit = (): void => {
    const field = fieldRef.current!;
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`;
  };
  useLayoutEffect(fit, [chat, chat.draft]);

  const send = (): void => {
    session.send(chat.draft);
    chat.notify();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || touchOnly.matches) return;
    // While an input method composes a word, Enter accepts it (Safari reports this only by the key code).
    if (event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    send();
  };
  return (
    <form class="composer column" aria-label={strings.composer} onSubmit={(event) => { event.preventDefault(); send(); }}>
      <div class="composer-card">
        <label class="hidden" for="message-field">{strings.messageLabel}</label>
        <textarea id="message-field" ref={fieldRef} rows={1} placeholder={strings.placeholder} value={chat.draft}
          enterkeyhint={touchOnly.matches ? 'enter' : 'send'} autofocus={!touchOnly.matches} onKeyDown={onKeyDown}
          onInput={(event) => { chat.draft = event.currentTarget.value; chat.notify(); }} />
        {session.answering ? (
          <button key="stop" type="button" class="send stop" title={`${strings.stop} (Esc)`} aria-label={strings.stop}
            onClick={() => { session.stop(); fieldRef.current?.focus(); }}>
            <StopIcon />
          </button>
        ) : (
          <button key="send" type="submit" class="send" title={strings.send} aria-label={strings.send}
            disabled={chat.draft.trim() === ''}>
            <SendIcon />
          </button>
        )}
      </div>
      <p class="composer-hint">
        <span class="keyboard-only">{strings.hintKeys} · <button type="button" class="text-button" onClick={onShortcuts}>{strings.allShortcuts}</button></span>
      </p>
    </form>
  );
}
