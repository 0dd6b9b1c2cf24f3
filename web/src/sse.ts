// Server-sent events from a byte stream, by the rules of the HTML standard (9.2.6): characters split anywhere, lines
// that end in LF, CR or CRLF, comments, several data lines in one event. Pure: bytes in, finished events out.

// An event larger than this is not an answer of ours.
export const eventCharsMax = 8 * 1024 * 1024;

export class SseParser {
  private readonly decoder = new TextDecoder();
  private line = ''; // the unfinished line
  private data: string[] = []; // data lines of the unfinished event
  private dataChars = 0;
  private afterCr = false; // the last character was CR: a LF that follows belongs to it

  // Returns the data of every event that these bytes finish. Throws RangeError beyond eventCharsMax.
  push(bytes: Uint8Array): string[] {
    const events: string[] = [];
    const text = this.decoder.decode(bytes, { stream: true });
    let start = 0;
    if (this.afterCr && text.length > 0) {
      if (text[0] === '\n') start = 1;
      this.afterCr = false;
    }
    // Each character is looked at once: what is kept of an unfinished line is not scanned again.
    for (let at = start; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code !== 10 && code !== 13) continue;
      this.endLine(this.line + text.slice(start, at), events);
      this.line = '';
      if (code === 13) {
        if (at + 1 === text.length) this.afterCr = true;
        else if (text.charCodeAt(at + 1) === 10) at++;
      }
      start = at + 1;
    }
    this.line += text.slice(start);
    if (this.line.length + this.dataChars > eventCharsMax) throw new RangeError('an event of the stream is too large');
    return events;
  }

  private endLine(line: string, events: string[]): void {
    if (line === '') {
      if (this.data.length > 0) events.push(this.data.join('\n'));
      this.data = [];
      this.dataChars = 0;
      return;
    }
    // Comments (":..."), event:, id: and retry: carry nothing for a chat.
    if (line !== 'data' && !line.startsWith('data:')) return;
    const value = line.slice(line[5] === ' ' ? 6 : 5);
    this.data.push(value);
    this.dataChars += value.length;
  }
}
