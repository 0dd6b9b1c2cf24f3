// The conversation, kept at its end while the person is at its end.
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../session';
import { strings } from '../strings';
import { useObservable } from './hooks';
import { DownIcon, Flame } from './icons';
import { Answer, UserMessage } from './message';

const endSlackPx = 24; // this close to the end counts as being there

export function Transcript({ session, scrollerRef }: { session: Session; scrollerRef: RefObject<HTMLDivElement | null> }) {
  const { chat } = session;
  useObservable(chat);
  const contentRef = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const lastTop = useRef(0);
  const [away, setAway] = useState(false);

  const toEnd = (): void => {
    const scroller = scrollerRef.current!;
    scroller.scrollTop = scroller.scrollHeight;
    lastTop.current = scroller.scrollTop;
  };
  const follow = (on: boolean): void => {
    following.current = on;
    setAway(!on);
  };
  const onScroll = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = scrollerRef.current!;
    const distance = scrollHeight - scrollTop - clientHeight;
    if (distance <= 2) follow(true);
    else if (scrollTop < lastTop.current) follow(false);
    else if (distance <= endSlackPx) follow(true);
    lastTop.current = scrollTop;
  };

  // Whatever makes the text longer, this runs before the frame is painted.
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (following.current) toEnd();
    });
    observer.observe(contentRef.current!);
    observer.observe(scrollerRef.current!);
    return () => observer.disconnect();
  }, []);
  // A question just asked, or another chat: show its end.
  useLayoutEffect(() => {
    follow(true);
    toEnd();
  }, [chat, chat.messages.length]);

  const lastId = chat.messages.at(-1)?.id;
  return (
    <main>
      <div class="transcript" ref={scrollerRef} onScroll={onScroll} tabIndex={0} role="log" aria-live="off"
        aria-label={strings.conversation}>
        <div class="column" ref={contentRef}>
          {chat.messages.length === 0 ? <Welcome session={session} /> : chat.messages.map((message) => (
            message.role === 'user'
              ? <UserMessage key={`${chat.id}.${message.id}`} message={message} />
              : <Answer key={`${chat.id}.${message.id}`} message={message} session={session} last={message.id === lastId} />
          ))}
        </div>
      </div>
      {away && chat.messages.length > 0 && (
        <div class="to-latest">
          <button type="button" class="icon-button raised" title={strings.toLatest} aria-label={strings.toLatest}
            onClick={() => { follow(true); toEnd(); }}>
            <DownIcon />
          </button>
        </div>
      )}
    </main>
  );
}

function Welcome({ session }: { session: Session }) {
  return (
    <div class="welcome">
      <Flame class="large" />
      <h2>{strings.greeting}</h2>
      <p class="quiet">{strings.privacy}</p>
      <ul class="suggestions" aria-label={strings.suggestionsLabel}>
        {strings.suggestions.map(([verb, rest]) => (
          <li key={rest}>
            <button type="button" onClick={() => session.send(`${verb} ${rest}`)}>
              <strong>{verb}</strong> <span>{rest}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
