// Markdown that arrives in pieces. Finished blocks are frozen and never parsed or touched again; only the open block
// at the end is parsed anew, and the work stays linear in the length of the answer (workFactor). Pure: text in, blocks
// out; sanitising and the DOM are sanitize.ts's.
import { Lexer, Marked, Parser, type Token, type Tokens } from 'marked';

export interface HtmlBlock {
  readonly kind: 'html';
  readonly id: number;
  readonly html: string; // not sanitised
  readonly open: boolean;
}

export interface CodeBlock {
  readonly kind: 'code';
  readonly id: number;
  readonly language: string;
  readonly text: string;
  readonly open: boolean;
}

// Immutable: a changed block is a new object under the same id, so views compare by identity.
export type Block = HtmlBlock | CodeBlock;

// Parsing everything per flush took 11.6 ms for 25 KB; the open block alone is small in almost every answer. For one
// huge paragraph, table or list item the open block is parsed only while all characters ever parsed stay under
// workFactor x characters received. At or below freeChars it is parsed in every flush.
const workFactor = 64;
const freeChars = 1024;
// The parser is quadratic on some texts (20 KB of "_a_": 0.3 s). A parse of a large block that took t waits 8 t.
const restFactor = 8;
// In a list longer than this the finished items are frozen as pieces of their own; the list becomes one block again
// when it ends.
const listPieceChars = 1024;

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => escapes[char]!);
}

// Links that a person may follow. Relative ones lead into our own pages and mean nothing in an answer.
export function allowedUrl(href: string): boolean {
  return /^(?:https?:\/\/|mailto:|tel:)/i.test(href);
}

// The heading levels of an answer start below the page's own (h1 the page, h2 the speaker) and never skip one.
class HeadingLevels {
  previous = 2;
  next(depth: number): number {
    this.previous = Math.min(depth + 2, this.previous + 1, 6);
    return this.previous;
  }
}

const gfm = new Marked({ gfm: true, breaks: false, async: false });

function makeParser(levels: HeadingLevels): Parser {
  const parser = new Parser({ ...gfm.defaults });
  const renderer = parser.renderer;
  renderer.heading = ({ tokens, depth }) => {
    const level = levels.next(depth);
    return `<h${level} class="md-h${depth}">${parser.parseInline(tokens)}</h${level}>`;
  };
  renderer.code = ({ text, lang }) => codeHtml(text, lang ?? '');
  renderer.html = ({ text }) => plainTags(text);
  renderer.checkbox = ({ checked }) => (checked ? '☑ ' : '☐ ');
  // An empty head cell heads nothing.
  renderer.tablecell = ({ tokens, header, align }) => {
    const text = parser.parseInline(tokens);
    const tag = header && text !== '' ? 'th' : 'td';
    return `<${tag}${align === null ? '' : ` align="${align}"`}>${text}</${tag}>\n`;
  };
  renderer.link = ({ href, tokens }) => {
    const text = parser.parseInline(tokens);
    return allowedUrl(href) ? `<a href="${escapeHtml(href)}">${text}</a>` : text;
  };
  // A picture from elsewhere would tell its host what is being read here (and a model can be made to write any
  // address): it is a link, fetched only when the person asks for it.
  renderer.image = ({ href, text }) => {
    const label = `Image: ${escapeHtml(text || 'without a description')}`;
    return allowedUrl(href) ? `<a href="${escapeHtml(href)}">${label}</a>` : label;
  };
  return parser;
}

// Tags in the Markdown itself: the few that are prose and bear no attribute work; all others are shown as they were
// written, which is what a text about <div> means, and leaves nothing that could act, load or style.
const proseTag = /<\/?(?:b|br|del|details|dd|dl|dt|em|i|ins|kbd|mark|p|q|s|samp|small|strong|sub|summary|sup|u|var|wbr)[ \t]*\/?>/gi;
function plainTags(source: string): string {
  let html = '';
  let end = 0;
  for (const match of source.matchAll(proseTag)) {
    html += escapeHtml(source.slice(end, match.index)) + match[0].toLowerCase();
    end = match.index + match[0].length;
  }
  return html + escapeHtml(source.slice(end));
}

function codeHtml(text: string, language: string): string {
  const name = languageName(language);
  const attribute = name === '' ? '' : ` class="language-${name}"`;
  return `<pre><code${attribute}>${escapeHtml(text.replace(/\n$/, ''))}</code></pre>`;
}

function languageName(info: string): string {
  return (info.trim().match(/^\S+/)?.[0] ?? '').replace(/[^\w+#.-]/g, '').slice(0, 32);
}

interface Fence {
  id: number;
  language: string;
  closing: RegExp;
  text: string; // finished lines, each with its LF
  rest: string; // the unfinished last line
}

export class MarkdownStream {
  private frozen: Block[] = [];
  private open: Block[] = [];
  private sourceParts: string[] = [];
  private tail = ''; // source of the open block and what follows it
  private tailChanged = false;
  private afterCr = false;
  private fence: Fence | null = null;
  // A list of which some items are frozen: source of those, index of its first block, number of its next item.
  private list: { source: string; firstBlock: number; next: number; level: number } | null = null;
  // Link definitions in finished blocks, and whether any were seen at all (also inside lists and quotes).
  private links: Lexer['tokens']['links'] = Object.create(null);
  private linksSeen = false;
  private levels = new HeadingLevels();
  private lexedLinks: Lexer['tokens']['links'] = Object.create(null); // of the last parse
  private nextId = 1;
  private ended = false;
  private receivedChars = 0;
  parsedChars = 0; // all characters ever given to the parser, for tests
  private parseMs = 0; // the last parse of the tail, and its end
  private parseEndMs = -Infinity;

  constructor(private readonly nowMs: () => number = () => performance.now()) {}

  get blocks(): readonly Block[] {
    return this.open.length === 0 ? this.frozen : [...this.frozen, ...this.open];
  }

  append(text: string): void {
    if (text === '' || this.ended) return;
    if (this.afterCr) text = '\r' + text;
    this.afterCr = text.endsWith('\r');
    if (this.afterCr) text = text.slice(0, -1);
    text = text.replace(/\r\n?/g, '\n');
    this.sourceParts.push(text);
    this.receivedChars += text.length;
    if (this.fence !== null) this.fence.rest += text;
    else this.tail += text;
    this.tailChanged = true;
  }

  // Brings `blocks` up to date with what was appended.
  flush(): void {
    if (!this.ended) this.advance(false);
  }

  // No more text follows: everything is parsed to its end and frozen.
  finish(): void {
    if (this.ended) return;
    if (this.afterCr) this.append('\n');
    this.advance(true);
    this.ended = true;
    if (this.linksSeen) this.rebuild();
  }

  // A link definition may follow the text that uses it: with all of them known, everything is parsed once more.
  private rebuild(): void {
    const source = this.sourceParts.join('');
    this.lex(source);
    const whole = new MarkdownStream();
    whole.links = this.lexedLinks;
    whole.nextId = this.nextId;
    whole.append(source);
    whole.advance(true);
    this.frozen = whole.frozen;
    this.parsedChars += whole.parsedChars;
  }

  private advance(final: boolean): void {
    for (;;) {
      if (this.fence !== null && !this.scanFence(this.fence, final)) return;
      if (!this.parseTail(final)) return;
    }
  }

  private lex(source: string): Token[] {
    this.parsedChars += source.length;
    const lexer = new Lexer({ ...gfm.defaults });
    Object.assign(lexer.tokens.links, this.links);
    try {
      const tokens = lexer.lex(source);
      this.lexedLinks = tokens.links;
      this.linksSeen ||= Object.keys(tokens.links).length > 0;
      return tokens;
    } catch {
      return [plainToken(source)]; // nested deeper than the parser's stack
    }
  }

  // Parses the tail; true when it ends in a code fence, which scanFence goes on with.
  private parseTail(final: boolean): boolean {
    if (!final && !this.tailChanged) return false;
    if (final && this.tail === '') {
      this.closeList('');
      this.open = [];
      return false;
    }
    const shown = final ? this.tail : closeInline(this.tail.slice(0, this.tail.length - heldBackChars(this.tail)));
    const affordable = this.parsedChars + shown.length <= workFactor * this.receivedChars;
    const startMs = this.nowMs();
    const rested = startMs >= this.parseEndMs + restFactor * this.parseMs;
    if (!final && shown.length > freeChars && !(affordable && rested)) return false;
    this.tailChanged = false;

    const tokens = this.lex(shown);
    this.parseEndMs = this.nowMs();
    this.parseMs = this.parseEndMs - startMs;
    let last = tokens.length - 1;
    while (last >= 0 && tokens[last]!.type === 'space') last--;
    const fenced = last >= 0 && tokens[last]!.type === 'code' && /^(`{3,}|~{3,})[^\n]*\n/.test(tokens[last]!.raw);
    // The last block is open: what comes next may still change it. All before it is finished.
    const finished = tokens.slice(0, final && !fenced ? tokens.length : Math.max(last, 0));
    const source = finished.map((token) => token.raw).join('');
    // Every cut of the source relies on this; if a parser's version ever broke it, nothing is frozen until the end.
    if (!final && !this.tail.startsWith(source)) return false;

    const openId = this.open[0]?.id;
    this.open = [];
    let reuseId = openId;
    for (const token of finished) {
      if (token.type === 'list' && this.list !== null) {
        this.closeList(token.raw);
        continue;
      }
      if (token.type !== 'space') this.closeList('');
      if (this.freeze(token, reuseId)) reuseId = undefined;
    }
    this.tail = final && !fenced ? '' : this.tail.slice(source.length);
    if (fenced) {
      this.openFence(reuseId);
      return true;
    }
    if (!final && last >= 0) this.showOpen(tokens[last]!, reuseId);
    return false;
  }

  private showOpen(token: Token, reuseId: number | undefined): void {
    const levels = new HeadingLevels();
    levels.previous = this.levels.previous;
    if (token.type === 'list') {
      const list = token as Tokens.List;
      this.freezeItems(list);
      if (this.list !== null && list.ordered) list.start = this.list.next;
    } else {
      this.closeList('');
    }
    const block = makeBlock(token, reuseId ?? this.nextId++, levels, true);
    this.open = block === null ? [] : [block];
  }

  // Freezes the finished items of a long list and leaves the last one in it.
  private freezeItems(list: Tokens.List): void {
    const done = list.items.slice(0, -1);
    const source = done.map((item) => item.raw).join('');
    if (source.length < listPieceChars || !this.tail.startsWith(source)) return;
    const first = this.list?.next ?? (list.start === '' ? 1 : list.start);
    this.list ??= { source: '', firstBlock: this.frozen.length, next: first, level: this.levels.previous };
    const piece: Tokens.List = { ...list, raw: source, start: list.ordered ? first : '', items: done };
    this.frozen.push(makeBlock(piece, this.nextId++, this.levels, false)!);
    this.list.source += source;
    this.list.next = first + done.length;
    list.items = list.items.slice(-1);
    this.tail = this.tail.slice(source.length);
  }

  // The list has ended: its pieces become one block. `rest` is the source of the items that were still open.
  private closeList(rest: string): void {
    if (this.list === null) return;
    const { source, firstBlock, level } = this.list;
    this.list = null;
    this.frozen.length = firstBlock;
    this.levels.previous = level;
    for (const token of this.lex(source + rest)) this.freeze(token, undefined);
  }

  private freeze(token: Token, id: number | undefined): boolean {
    if (token.type === 'def') {
      const { tag, href, title } = token as Tokens.Def;
      this.links[tag] ??= { href, title };
    }
    const block = makeBlock(token, id ?? this.nextId, this.levels, false);
    if (block === null) return false;
    if (id === undefined) this.nextId++;
    this.frozen.push(block);
    return true;
  }

  private openFence(reuseId: number | undefined): void {
    this.closeList('');
    const lineEnd = this.tail.indexOf('\n');
    const opening = this.tail.slice(0, lineEnd);
    const marks = opening.match(/^(`{3,}|~{3,})/)![1]!;
    this.fence = {
      id: reuseId ?? this.nextId++,
      language: languageName(opening.slice(marks.length)),
      closing: new RegExp(`^ {0,3}${marks}[~\`]* *$`),
      text: '',
      rest: this.tail.slice(lineEnd + 1),
    };
    this.tail = '';
  }

  // Code needs no parsing: whole lines are moved over as they come. True when the fence is closed.
  private scanFence(fence: Fence, final: boolean): boolean {
    let lineStart = 0;
    const close = (after: string): void => {
      this.frozen.push(codeBlock(fence, fence.text.replace(/\n$/, ''), false));
      this.open = [];
      this.fence = null;
      this.tail = after;
      this.tailChanged = true;
    };
    for (let lineEnd; (lineEnd = fence.rest.indexOf('\n', lineStart)) >= 0; lineStart = lineEnd + 1) {
      if (fence.closing.test(fence.rest.slice(lineStart, lineEnd))) {
        fence.text += fence.rest.slice(0, lineStart);
        close(fence.rest.slice(lineEnd));
        return true;
      }
    }
    fence.text += fence.rest.slice(0, lineStart);
    fence.rest = fence.rest.slice(lineStart);
    if (final) {
      if (!fence.closing.test(fence.rest)) fence.text += fence.rest + '\n';
      close('');
      return true;
    }
    // A line that may become the closing fence is not shown yet.
    const shown = /^ {0,3}[`~]*$/.test(fence.rest) ? '' : fence.rest;
    this.open = [codeBlock(fence, fence.text + shown, true)];
    return false;
  }
}

function codeBlock(fence: Fence, text: string, open: boolean): CodeBlock {
  return { kind: 'code', id: fence.id, language: fence.language, text, open };
}

function makeBlock(token: Token, id: number, levels: HeadingLevels, open: boolean): Block | null {
  if (token.type === 'space' || token.type === 'def') return null;
  if (token.type === 'code') {
    const code = token as Tokens.Code;
    return { kind: 'code', id, language: languageName(code.lang ?? ''), text: code.text.replace(/\n$/, ''), open };
  }
  let html: string;
  try {
    html = token.type === 'plain' ? plainHtml(token.raw) : makeParser(levels).parse([token]);
  } catch {
    html = plainHtml(token.raw);
  }
  return { kind: 'html', id, html, open };
}

function plainToken(raw: string): Token {
  return { type: 'plain', raw };
}

function plainHtml(text: string): string {
  return `<p>${escapeHtml(text)}</p>`;
}

// How many characters at the end are not shown yet, because the next ones will tell what they are: a line of marks
// alone ("-" may underline a heading, start a list or draw a rule) and the head of a table before its second line.
export function heldBackChars(source: string): number {
  const lineStart = source.lastIndexOf('\n') + 1;
  const line = source.slice(lineStart);
  const marks = /^\s*(?:[-=*_+#~`>]+|\d{1,9}[.)]?|[-*+] \[[ xX]?\]?)[ \t]*$/.test(line);
  if (lineStart > 0 && /^[|:\- ]*$/.test(line)) {
    const headStart = source.lastIndexOf('\n', lineStart - 2) + 1;
    if (isTableHead(source, headStart)) return source.length - headStart;
  }
  return marks || isTableHead(source, lineStart) ? line.length : 0;
}

// A line that begins with "|" after a blank line or at the start.
function isTableHead(source: string, lineStart: number): boolean {
  return source[lineStart] === '|' && (lineStart === 0 || source[lineStart - 2] === '\n' || lineStart === 1);
}

// Closes code and bold that are still open in the last paragraph, so that their marks don't flash as text; an address
// that is still arriving is not shown.
export function closeInline(source: string): string {
  const start = source.lastIndexOf('\n\n') + 1;
  const text = source.slice(start);
  if (text.length > 4 * freeChars || /```|~~~|^ {4}/m.test(text)) return source;
  let code = 0;
  for (const char of text) if (char === '`') code++;
  if (code % 2 === 1) return source.endsWith('`') ? source.slice(0, -1) : source + '`';
  const bracket = source.lastIndexOf('[');
  const link = bracket < start ? null : source.slice(bracket).match(/^\[([^\]\n]*)(?:\](?:\([^)\s]*)?)?$/);
  if (link !== null && !/^\[[ xX]?\]?$/.test(link[0])) {
    source = source.slice(0, source[bracket - 1] === '!' ? bracket - 1 : bracket) + link[1]!;
  }
  const bold = text.replace(/`[^`]*`/g, '').split('**').length - 1;
  if (bold % 2 === 0) return source;
  if (source.endsWith('**')) return source.slice(0, -2);
  if (source.endsWith('*')) return source + '*';
  return /\s$/.test(source) ? source.trimEnd() + '**' : source + '**';
}

// One Markdown text, as it stands at the end of its stream.
export function renderMarkdown(source: string): readonly Block[] {
  const stream = new MarkdownStream();
  stream.append(source);
  stream.finish();
  return stream.blocks;
}
