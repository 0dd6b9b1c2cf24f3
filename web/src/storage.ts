// What the browser keeps: settings and recent chats (localStorage), the API key and this tab's chat (sessionStorage).
// A browser may refuse storage (private windows, full disk): then things last as long as the page.
import { Chat, Message, type AnswerState, type Failure, type Figures } from './chat';

const chatPrefix = 'hearth.chat.';
const chatsMax = 40;

export type Theme = 'system' | 'light' | 'dark';

export interface Settings {
  systemPrompt: string;
  temperature: number | null; // null: the server's default
  topP: number | null;
  maxTokens: number | null;
  theme: Theme;
}

export const defaultSettings: Settings = { systemPrompt: '', temperature: null, topP: null, maxTokens: null, theme: 'system' };

function read(area: () => Storage, key: string): any {
  try {
    return JSON.parse(area().getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

function write(area: () => Storage, key: string, value: unknown): boolean {
  try {
    if (value === null) area().removeItem(key);
    else area().setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

const local = (): Storage => localStorage;
const session = (): Storage => sessionStorage;

function numberIn(value: unknown, low: number, high: number): number | null {
  return typeof value === 'number' && value >= low && value <= high ? value : null;
}

export function loadSettings(): Settings {
  const saved = read(local, 'hearth.settings') ?? {};
  return {
    systemPrompt: typeof saved.systemPrompt === 'string' ? saved.systemPrompt : '',
    temperature: numberIn(saved.temperature, 0, 2),
    topP: numberIn(saved.topP, 0.01, 1),
    maxTokens: numberIn(saved.maxTokens, 1, 1e9),
    theme: saved.theme === 'light' || saved.theme === 'dark' ? saved.theme : 'system',
  };
}

export function saveSettings(settings: Settings): void {
  write(local, 'hearth.settings', settings);
}

export function loadKey(): string {
  const key = read(session, 'hearth.key');
  return typeof key === 'string' ? key : '';
}

export function saveKey(key: string): void {
  write(session, 'hearth.key', key === '' ? null : key);
}

export function loadCurrentId(): string | null {
  const id = read(session, 'hearth.current');
  return typeof id === 'string' ? id : null;
}

export function saveCurrentId(id: string): void {
  write(session, 'hearth.current', id);
}

interface SavedMessage {
  role: 'user' | 'assistant';
  text: string;
  state: AnswerState;
  finishReason: string;
  failure: Failure | null;
  figures: Figures;
}

export interface ChatEntry {
  id: string;
  title: string;
  updatedMs: number;
}

// Newest first.
export function listChats(): ChatEntry[] {
  const entries: ChatEntry[] = [];
  try {
    for (let index = 0; index < localStorage.length; index++) {
      const key = localStorage.key(index)!;
      if (!key.startsWith(chatPrefix)) continue;
      const saved = read(local, key);
      if (saved === null || typeof saved.updatedMs !== 'number' || typeof saved.title !== 'string') continue;
      entries.push({ id: key.slice(chatPrefix.length), title: saved.title, updatedMs: saved.updatedMs });
    }
  } catch {
    // No storage, no list.
  }
  return entries.sort((a, b) => b.updatedMs - a.updatedMs);
}

export function loadChat(id: string): Chat | null {
  const saved = read(local, chatPrefix + id);
  if (!Array.isArray(saved?.messages)) return null;
  const chat = new Chat(id);
  chat.updatedMs = Number(saved.updatedMs) || 0;
  chat.draft = typeof saved.draft === 'string' ? saved.draft : '';
  for (const entry of saved.messages as SavedMessage[]) {
    if ((entry?.role !== 'user' && entry?.role !== 'assistant') || typeof entry.text !== 'string') return null;
    const message = new Message(chat.messages.length + 1, entry.role);
    message.text = entry.text;
    // Was running when the page was closed: nobody reads that stream any more.
    message.state = entry.state === 'waiting' || entry.state === 'streaming' ? 'stopped' : entry.state;
    message.finishReason = entry.finishReason ?? '';
    message.failure = entry.failure ?? null;
    if (entry.figures) message.figures = entry.figures;
    chat.messages.push(message);
  }
  return chat;
}

export function saveChat(chat: Chat): void {
  if (chat.messages.length === 0) return;
  const messages: SavedMessage[] = chat.messages.map(({ role, text, state, finishReason, failure, figures }) => (
    { role, text, state, finishReason, failure, figures }));
  const saved = { title: chat.title, updatedMs: chat.updatedMs, draft: chat.draft, messages };
  // Runs every few seconds while an answer grows: the list, which reads every chat, is made only when one must go.
  if (write(local, chatPrefix + chat.id, saved) && countChats() <= chatsMax) return;
  const others = listChats().filter((entry) => entry.id !== chat.id);
  for (const old of others.splice(chatsMax - 1)) deleteChat(old.id);
  // A full store gives up its oldest chats, one by one.
  while (!write(local, chatPrefix + chat.id, saved)) {
    const oldest = others.pop();
    if (oldest === undefined) return;
    deleteChat(oldest.id);
  }
}

function countChats(): number {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(chatPrefix)).length;
  } catch {
    return 0;
  }
}

export function deleteChat(id: string): void {
  write(local, chatPrefix + id, null);
}
