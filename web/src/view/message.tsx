// One message. An answer renders only the block that is still open; finished blocks keep their nodes.
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Message } from '../chat';
import type { Block, CodeBlock, HtmlBlock } from '../markdown';
import { toFragment } from '../sanitize';
import type { Session } from '../session';
import { strings } from '../strings';
import { copyText } from './clipboard';
import { useClock, useObservable } from './hooks';
import { CheckIcon, CopyIcon, Flame, RetryIcon, WarnIcon } from './icons';

const copiedShownMs = 1600;
const longWaitMs = 6000;

// Copies, and says so in the button for a moment.
function flashCopied(button: HTMLButtonElement, code: string): void {
  void copyText(code).then((done) => {
    button.textContent = done ? strings.copied : strings.copyFailed;
    setTimeout(() => (button.textContent = strings.copy), copiedShownMs);
  });
}

function HtmlView({ block }: { block: HtmlBlock }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => ref.current!.replaceChildren(toFragment(block.html, flashCopied)), [block.html]);
  return <div class={block.open ? 'block open' : 'block'} ref={ref} />;
}

function CodeView({ block }: { block: CodeBlock }) {
  const ref = useRef<HTMLElement>(null);
  // Code grows at its end: only what is new is added to the page.
  useLayoutEffect(() => {
    const element = ref.current!;
    const shown = element.firstChild instanceof Text ? element.firstChild : element.appendChild(new Text());
    if (block.text.length >= shown.length && block.open) shown.appendData(block.text.slice(shown.length));
    else if (shown.data !== block.text) shown.data = block.text;
  }, [block.text]);
  return (
    <div class="block">
      <div class="code">
        <div class="code-head">
          <span>{block.language || strings.code}</span>
          <button type="button" class="code-copy" onClick={(event) => flashCopied(event.currentTarget, block.text)}>
            {strings.copy}
          </button>
        </div>
        <div class="code-scroll" tabIndex={0} role="group" aria-label={strings.codeLabel(block.language)}>
          <pre><code ref={ref} /></pre>
        </div>
      </div>
    </div>
  );
}

// The same node for the same block: Preact passes over it without a look.
const drawn = new WeakMap<Block, VNode>();
function draw(block: Block): VNode {
  let node = drawn.get(block);
  if (node === undefined) {
    node = block.kind === 'code' ? <CodeView key={block.id} block={block} /> : <HtmlView key={block.id} block={block} />;
    drawn.set(block, node);
  }
  return node;
}

export function UserMessage({ message }: { message: Message }) {
  return (
    <article class="message user">
      <h2 class="hidden">{strings.youSaid}</h2>
      <div class="bubble">{message.text}</div>
    </article>
  );
}

export function Answer({ message, session, last }: { message: Message; session: Session; last: boolean }) {
  useObservable(message);
  return (
    <article class={`message answer ${message.state}`}>
      <h2 class="hidden">{strings.answered}</h2>
      <Flame class={message.running ? 'burning' : ''} />
      <div class="answer-body">
        {message.state === 'waiting' && <Waiting message={message} />}
        <div class="prose">{message.markdown.blocks.map(draw)}</div>
        {message.state === 'done' && message.text === '' && <p class="quiet">{strings.emptyAnswer}</p>}
        {message.failure !== null && <FailureCard message={message} session={session} last={last} />}
        {message.state !== 'waiting' && <Footer message={message} session={session} last={last} />}
      </div>
    </article>
  );
}

function Waiting({ message }: { message: Message }) {
  useClock(true, 100);
  const ms = performance.now() - message.sentAtMs;
  return (
    <p class="waiting">
      <span class="shimmer">{strings.waiting(ms)}</span>
      {ms > longWaitMs && <span class="quiet waiting-long">{strings.waitingLong}</span>}
    </p>
  );
}

function FailureCard({ message, session, last }: { message: Message; session: Session; last: boolean }) {
  const failure = message.failure!;
  const now = useClock(last && failure.retryAtMs !== null && failure.retryAtMs > Date.now(), 250);
  const waitSeconds = failure.retryAtMs === null ? 0 : Math.max(0, Math.ceil((failure.retryAtMs - now) / 1000));
  return (
    <div class="failure">
      <WarnIcon />
      <div>
        <strong>{strings.errorTitles[failure.kind]}</strong>
        <p>{failure.message}</p>
        {failure.kind === 'context' && <p>{strings.contextHint}</p>}
        {message.text !== '' && <p>{strings.keptText}</p>}
        {last && (
          <div class="failure-actions">
            {failure.kind === 'auth' && (
              <button type="button" class="button" onClick={() => session.askKey()}>{strings.enterKey}</button>
            )}
            {failure.kind === 'context' && (
              <button type="button" class="button" onClick={() => session.newChat()}>{strings.newChat}</button>
            )}
            <button type="button" class="button" disabled={waitSeconds > 0} onClick={() => session.regenerate()}>
              {waitSeconds > 0 ? strings.tryAgainIn(waitSeconds) : strings.tryAgain}
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

function Footer({ message, session, last }: { message: Message; session: Session; last: boolean }) {
  const { figures } = message;
  const parts: string[] = [];
  if (message.rate !== null) parts.push(strings.rate(message.rate));
  if (figures.ttftMs !== null) parts.push(strings.ttft(figures.ttftMs));
  if (figures.tokens > 0) parts.push(strings.tokens(figures.tokens));
  if (figures.usage !== null) parts.push(strings.promptTokens(figures.usage.promptTokens, figures.usage.cachedTokens));
  if (message.state === 'stopped') parts.push(strings.stopped);
  if (message.finishReason === 'length') parts.push(strings.lengthReached);
  const copy = !message.running && message.text !== '';
  const again = !message.running && last && message.failure === null; // a failure offers it itself
  if (parts.length === 0 && !copy && !again) return null;
  return (
    <footer class="answer-foot">
      {(copy || again) && (
        <div class="answer-actions">
          {copy && <CopyButton text={message.text} session={session} />}
          {again && (
            <button type="button" class="icon-button small" title={strings.regenerate} aria-label={strings.regenerate}
              onClick={() => session.regenerate()}>
              <RetryIcon />
            </button>
          )}
        </div>
      )}
      {parts.length > 0 && (
        <ul class="figures" aria-label={strings.statistics}>{parts.map((part) => <li key={part}>{part}</li>)}</ul>
      )}
    </footer>
  );
}

function CopyButton({ text, session }: { text: string; session: Session }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), copiedShownMs);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (): Promise<void> => {
    const done = await copyText(text);
    setCopied(done);
    session.announce(done ? strings.copied : strings.copyFailed);
  };
  return (
    <button type="button" class="icon-button small" title={strings.copyMessage} aria-label={strings.copyMessage} onClick={copy}>
      {copied ? <CheckIcon /> : <CopyIcon />}
    </button>
  );
}
