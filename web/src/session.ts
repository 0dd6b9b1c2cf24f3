// What the page does: one chat in view, at most one answer running, the model's entry, the settings. Views call its
// verbs and subscribe to it; it knows no view.
import { ApiError, fetchModel, streamChat, type ChatRequest, type ModelInfo } from './api';
import { Chat, Observable, turnsOf, type Message } from './chat';
import { strings } from './strings';
import * as storage from './storage';

// unknown: not asked yet.
export type ServerState = 'unknown' | 'ready' | 'starting' | 'offline' | 'key';

const saveEveryMs = 2000; // while an answer runs
const pollFirstMs = 1000; // until the server is ready
const pollMaxMs = 15000;

export class Session extends Observable {
  chat: Chat;
  settings = storage.loadSettings();
  model: ModelInfo | null = null;
  server: ServerState = 'unknown';
  keyAsked = false; // the key dialog should be open
  keyWrong = false;
  announcement = ''; // what the status region says
  private key = storage.loadKey();
  private running: { message: Message; chat: Chat; abort: AbortController } | null = null;
  private retryAfterKey = false;
  private watching = false;

  constructor() {
    super();
    const id = storage.loadCurrentId();
    this.chat = (id === null ? null : storage.loadChat(id)) ?? this.makeChat();
  }

  get answering(): boolean {
    return this.running !== null;
  }

  get hasKey(): boolean {
    return this.key !== '';
  }

  // --- the server ---

  // Asks for the model until the server names it.
  async watchServer(): Promise<void> {
    if (this.watching) return;
    this.watching = true;
    for (let pause = pollFirstMs; !(await this.askModel()); pause = Math.min(pause * 2, pollMaxMs)) {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.watching = false;
  }

  // True when there is nothing more to ask for: the model is known, or a person has to give a key first.
  private async askModel(): Promise<boolean> {
    try {
      this.model = await fetchModel(this.key);
      this.setServer('ready');
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.kind === 'auth') {
        this.setServer('key');
        this.askKey();
        return true;
      }
      this.setServer(error instanceof ApiError && error.kind === 'network' ? 'offline' : 'starting');
      return false;
    }
  }

  private setServer(state: ServerState): void {
    this.server = state;
    this.notify();
  }

  askKey(): void {
    this.keyAsked = true;
    this.keyWrong = this.key !== '';
    this.notify();
  }

  giveKey(key: string): void {
    this.key = key;
    storage.saveKey(key);
    this.keyAsked = false;
    this.keyWrong = false;
    this.notify();
    void this.watchServer();
    if (this.retryAfterKey && this.chat.messages.at(-1)?.failure?.kind === 'auth') this.regenerate();
    this.retryAfterKey = false;
  }

  forgetKey(): void {
    this.key = '';
    storage.saveKey('');
    this.notify();
  }

  dismissKey(): void {
    this.keyAsked = false;
    this.retryAfterKey = false;
    this.notify();
  }

  // --- settings ---

  change(settings: Partial<storage.Settings>): void {
    this.settings = { ...this.settings, ...settings };
    storage.saveSettings(this.settings);
    this.notify();
  }

  // --- chats ---

  private makeChat(): Chat {
    // Not a secret, only a name; crypto.randomUUID is missing where the page comes over plain HTTP.
    const chat = new Chat(Date.now().toString(36) + Math.random().toString(36).slice(2, 8));
    storage.saveCurrentId(chat.id);
    return chat;
  }

  newChat(): void {
    this.leaveChat();
    if (this.chat.messages.length > 0) this.chat = this.makeChat();
    this.chat.draft = '';
    this.announce(strings.announceNewChat);
  }

  openChat(id: string): void {
    if (id === this.chat.id) return;
    this.leaveChat();
    const chat = storage.loadChat(id);
    if (chat === null) return;
    this.chat = chat;
    storage.saveCurrentId(id);
    this.notify();
  }

  deleteChat(id: string): void {
    if (id === this.chat.id) {
      this.stop();
      this.chat = this.makeChat();
    }
    storage.deleteChat(id);
    this.notify();
  }

  private leaveChat(): void {
    this.stop();
    this.save();
  }

  save(): void {
    storage.saveChat(this.chat);
  }

  // --- messages ---

  send(text: string): void {
    if (text.trim() === '' || this.running !== null) return;
    const question = this.chat.add('user');
    question.text = text;
    this.chat.draft = '';
    this.ask();
  }

  // Takes back the last answer and asks again.
  regenerate(): void {
    if (this.running !== null) return;
    if (this.chat.messages.at(-1)?.role === 'assistant') this.chat.messages.pop();
    if (this.chat.messages.at(-1)?.role === 'user') this.ask();
  }

  stop(): void {
    this.running?.abort.abort();
  }

  private ask(): void {
    const chat = this.chat;
    const request: ChatRequest = {
      model: this.model?.id ?? 'default',
      messages: turnsOf(chat.messages, this.settings.systemPrompt),
    };
    const { temperature, topP, maxTokens } = this.settings;
    if (temperature !== null) request.temperature = temperature;
    if (topP !== null) request.top_p = topP;
    if (maxTokens !== null) request.max_tokens = maxTokens;

    const message = chat.add('assistant');
    message.state = 'waiting';
    message.sentAtMs = performance.now();
    chat.updatedMs = Date.now();
    const abort = new AbortController();
    this.running = { message, chat, abort };
    storage.saveChat(chat);
    this.announce(strings.announceGenerating);
    chat.notify();
    void this.receive(request, message, chat, abort.signal);
  }

  private async receive(request: ChatRequest, message: Message, chat: Chat, signal: AbortSignal): Promise<void> {
    const { figures } = message;
    const paint = new FramePainter(() => {
      message.markdown.flush();
      message.notify();
    });
    let firstMs = 0;
    let savedMs = performance.now();
    try {
      for await (const part of streamChat(request, this.key, signal)) {
        const nowMs = performance.now();
        if (part.kind === 'text') {
          if (figures.ttftMs === null) {
            firstMs = nowMs;
            figures.ttftMs = nowMs - message.sentAtMs;
            message.state = 'streaming';
          }
          figures.tokens++;
          figures.decodeMs = nowMs - firstMs;
          message.append(part.text);
        } else if (part.kind === 'finish') {
          message.finishReason = part.reason;
        } else {
          figures.usage = part.usage;
          figures.tokens = part.usage.completionTokens;
        }
        paint.request();
        if (nowMs - savedMs > saveEveryMs) {
          savedMs = nowMs;
          storage.saveChat(chat);
        }
      }
      message.state = 'done';
      this.announcement = strings.announceDone(message.text.split(/\s+/).filter((word) => word !== '').length);
    } catch (error) {
      this.fail(message, signal.aborted ? null : error);
    }
    paint.cancel();
    message.markdown.finish();
    this.running = null;
    chat.updatedMs = Date.now();
    storage.saveChat(chat);
    message.notify();
    chat.notify();
    this.notify();
  }

  // `error` null: the person stopped it.
  private fail(message: Message, error: unknown): void {
    if (error === null) {
      message.state = 'stopped';
      this.announcement = strings.announceStopped;
      return;
    }
    const known = error instanceof ApiError ? error : new ApiError('server', String(error));
    message.state = 'failed';
    message.failure = {
      kind: known.kind,
      message: known.message,
      retryAtMs: known.retryAfterSeconds === null ? null : Date.now() + known.retryAfterSeconds * 1000,
    };
    this.announcement = `${strings.errorTitles[known.kind]}. ${known.message}`;
    if (known.kind === 'auth') {
      this.retryAfterKey = true;
      this.askKey();
    }
    if (known.kind === 'network' || known.kind === 'starting') {
      this.server = known.kind === 'network' ? 'offline' : 'starting';
      void this.watchServer();
    }
  }

  announce(text: string): void {
    this.announcement = text;
    this.notify();
  }
}

// At most one paint per frame, however fast the pieces come. A hidden page gets no frames: then nothing is painted
// until it is looked at again or the answer ends.
class FramePainter {
  private frame = 0;
  constructor(private readonly paint: () => void) {}
  request(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }
  cancel(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}
