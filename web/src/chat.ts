// A chat and its messages as data, each able to tell its viewers that it changed.
import type { ErrorKind, Turn, Usage } from './api';
import { MarkdownStream } from './markdown';

export class Observable {
  private readonly listeners = new Set<() => void>();
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

// waiting: asked, no text yet. The last three are ends; the text is kept in each of them.
export type AnswerState = 'waiting' | 'streaming' | 'done' | 'stopped' | 'failed';

export interface Failure {
  kind: ErrorKind;
  message: string;
  retryAtMs: number | null; // Date.now() scale
}

// Times are performance.now() of the answer's own page; only differences are kept.
export interface Figures {
  ttftMs: number | null; // sent -> first text
  decodeMs: number; // first text -> last text
  tokens: number; // pieces received; the server's own count once it has told it
  usage: Usage | null;
}

export class Message extends Observable {
  text = '';
  state: AnswerState = 'done';
  finishReason = '';
  failure: Failure | null = null;
  figures: Figures = { ttftMs: null, decodeMs: 0, tokens: 0, usage: null };
  sentAtMs = 0; // performance.now()
  private parsed: MarkdownStream | null = null;

  constructor(readonly id: number, readonly role: 'user' | 'assistant') {
    super();
  }

  get running(): boolean {
    return this.state === 'waiting' || this.state === 'streaming';
  }

  append(text: string): void {
    this.text += text;
    this.markdown.append(text);
  }

  get markdown(): MarkdownStream {
    if (this.parsed === null) {
      this.parsed = new MarkdownStream();
      this.parsed.append(this.text);
      if (!this.running) this.parsed.finish();
    }
    return this.parsed;
  }

  // Tokens per second: the server's own measurement, else what arrived here after the first piece.
  get rate(): number | null {
    const { usage, tokens, decodeMs } = this.figures;
    if (usage !== null && usage.tokensPerSecond !== null) return usage.tokensPerSecond;
    return tokens > 1 && decodeMs >= rateWindowMs ? ((tokens - 1) / decodeMs) * 1000 : null;
  }
}

const titleCharsMax = 60;
const rateWindowMs = 50; // a shorter time measures the network's buffers

export class Chat extends Observable {
  messages: Message[] = [];
  draft = '';
  updatedMs = 0; // Date.now()

  constructor(readonly id: string) {
    super();
  }

  get title(): string {
    const first = this.messages.find((message) => message.role === 'user')?.text.trim().replace(/\s+/g, ' ') ?? '';
    return first.length > titleCharsMax ? first.slice(0, titleCharsMax - 1).trimEnd() + '…' : first;
  }

  add(role: 'user' | 'assistant'): Message {
    const message = new Message((this.messages.at(-1)?.id ?? 0) + 1, role);
    this.messages.push(message);
    return message;
  }
}

// What the model is shown: the system prompt, then the turns. Many templates insist that speakers alternate, so an
// answer that never came leaves its question to be joined with the next one.
export function turnsOf(messages: readonly Message[], systemPrompt: string): Turn[] {
  const turns: Turn[] = [];
  if (systemPrompt.trim() !== '') turns.push({ role: 'system', content: systemPrompt });
  for (const { role, text } of messages) {
    if (text === '') continue;
    const last = turns.at(-1);
    if (last?.role === role) last.content += '\n\n' + text;
    else turns.push({ role, content: text });
  }
  return turns;
}
