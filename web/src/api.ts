// What the page asks of the server: the model's entry and a streamed chat completion. Knows no view and no storage.
import { SseParser } from './sse';

export interface Turn {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface ChatRequest {
  model: string;
  messages: Turn[];
  temperature?: number;
  top_p?: number;
  max_tokens?: number;
}

export interface Usage {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  tokensPerSecond: number | null; // as the server measured it; null when it does not say
}

export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'finish'; reason: string }
  | { kind: 'usage'; usage: Usage };

// What the server does when a request leaves it open; null where it doesn't say.
export interface Defaults {
  temperature: number | null;
  topP: number | null;
  maxTokens: number | null;
}

export interface ModelInfo {
  id: string;
  contextTokens: number | null;
  defaults: Defaults;
}

// auth: a key is needed or wrong. busy: 429. starting: 503, loading or draining. context: the prompt does not fit.
// refused: another 4xx. server: 5xx, an error inside a stream, or nonsense. network: no answer, or a cut.
export type ErrorKind = 'auth' | 'busy' | 'starting' | 'context' | 'refused' | 'server' | 'network';

export class ApiError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }
}

function headers(key: string): Record<string, string> {
  return key === '' ? {} : { Authorization: `Bearer ${key}` };
}

// A Retry-After is seconds or a date; null when absent or unreadable.
export function retryAfter(value: string | null, nowMs: number): number | null {
  if (value === null || value.trim() === '') return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - nowMs) / 1000));
}

export function errorKind(status: number, code: string): ErrorKind {
  if (code === 'context_length_exceeded') return 'context';
  if (status === 401 || status === 403) return 'auth';
  if (status === 429) return 'busy';
  if (status === 503) return 'starting';
  return status >= 400 && status < 500 ? 'refused' : 'server';
}

async function errorOf(response: Response): Promise<ApiError> {
  let message = `The server answered ${response.status}.`;
  let code = '';
  try {
    const error = (await response.json())?.error;
    if (typeof error === 'string') message = error;
    if (typeof error?.message === 'string') message = error.message;
    if (typeof error?.code === 'string') code = error.code;
  } catch {
    // Not JSON: the status says it all.
  }
  return new ApiError(errorKind(response.status, code), message, retryAfter(response.headers.get('retry-after'), Date.now()));
}

function networkError(error: unknown): unknown {
  // fetch and its body report every lost connection as a TypeError; an abort is the caller's own doing.
  if (error instanceof DOMException && error.name === 'AbortError') return error;
  return new ApiError('network', 'The connection to the server was lost.');
}

// The first served model.
export async function fetchModel(key: string): Promise<ModelInfo> {
  let response: Response;
  try {
    response = await fetch('/v1/models', { headers: headers(key) });
  } catch (error) {
    throw networkError(error);
  }
  if (!response.ok) throw await errorOf(response);
  const entry = (await response.json().catch(() => null))?.data?.[0];
  if (typeof entry?.id !== 'string') throw new ApiError('server', 'The server names no model.');
  return {
    id: entry.id,
    contextTokens: numberOrNull(entry.max_model_len ?? entry.context_length),
    defaults: {
      temperature: numberOrNull(entry.sampling_defaults?.temperature),
      topP: numberOrNull(entry.sampling_defaults?.top_p),
      maxTokens: numberOrNull(entry.default_max_tokens),
    },
  };
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}

// The parts of one chunk of a stream; throws ApiError for an error chunk and for what is not a chunk.
export function partsOf(data: string): Part[] {
  let chunk: any;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ApiError('server', 'The server sent something that is not a piece of an answer.');
  }
  if (chunk?.error) {
    const { message, code } = chunk.error;
    throw new ApiError(
      errorKind(500, typeof code === 'string' ? code : ''),
      typeof message === 'string' ? message : 'The server reported an error.',
    );
  }
  const parts: Part[] = [];
  const choice = chunk?.choices?.[0];
  if (typeof choice?.delta?.content === 'string' && choice.delta.content !== '') {
    parts.push({ kind: 'text', text: choice.delta.content });
  }
  if (typeof choice?.finish_reason === 'string') parts.push({ kind: 'finish', reason: choice.finish_reason });
  if (chunk?.usage) {
    const rate = chunk.timings?.predicted_per_second;
    parts.push({
      kind: 'usage',
      usage: {
        promptTokens: count(chunk.usage.prompt_tokens),
        cachedTokens: count(chunk.usage.prompt_tokens_details?.cached_tokens),
        completionTokens: count(chunk.usage.completion_tokens),
        tokensPerSecond: typeof rate === 'number' && Number.isFinite(rate) && rate > 0 ? rate : null,
      },
    });
  }
  return parts;
}

// Streams one answer. Ends normally only when the server has finished it; a cut, an error chunk or a refusal throws
// ApiError, an abort throws AbortError. What was yielded before stays the caller's.
export async function* streamChat(request: ChatRequest, key: string, signal: AbortSignal): AsyncGenerator<Part> {
  let response: Response;
  try {
    response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers(key) },
      body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
      signal,
    });
  } catch (error) {
    throw networkError(error);
  }
  if (!response.ok) throw await errorOf(response);
  if (response.body === null) throw new ApiError('server', 'The answer has no body.');

  const reader = response.body.getReader();
  const parser = new SseParser();
  let finished = false;
  try {
    for (;;) {
      let read;
      try {
        read = await reader.read();
      } catch (error) {
        // Some servers reset instead of closing; after the finish chunk nothing is missing.
        if (finished && !signal.aborted) return;
        throw networkError(error);
      }
      if (read.done) break;
      for (const data of parser.push(read.value)) {
        if (data === '[DONE]') return;
        for (const part of partsOf(data)) {
          if (part.kind === 'finish') finished = true;
          yield part;
        }
      }
    }
  } finally {
    // Also when the caller leaves early: tells the server that nobody reads.
    reader.cancel().catch(() => {});
  }
  if (!finished) throw new ApiError('network', 'The connection to the server was lost before the answer ended.');
}
