// From untrusted HTML (a model's Markdown, rendered) to nodes that may stand in the page. What a model writes is
// hostile input. markdown.ts already writes every tag itself; this is the second wall, which doesn't trust the first:
// only the tags of prose survive, no attribute that acts, styles, loads or names anything.
import DOMPurify, { type Config } from 'dompurify';
import { allowedUrl } from './markdown';
import { strings } from './strings';

const tags = [
  'a', 'b', 'blockquote', 'br', 'code', 'dd', 'del', 'details', 'dl', 'dt', 'em', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'ins',
  'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's', 'samp', 'small', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody',
  'td', 'th', 'thead', 'tr', 'u', 'ul', 'var', 'wbr',
];

const config: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: tags,
  ALLOWED_ATTR: ['href', 'class', 'start', 'align'],
  ADD_URI_SAFE_ATTR: ['start', 'align'], // their values are no addresses
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|tel:)/i,
  RETURN_DOM_FRAGMENT: true,
};

const allowedClass = /^(?:language-[\w+#.-]{1,32}|md-h[1-6])$/;

let hooked = false;
function addHooks(): void {
  if (hooked) return;
  hooked = true;
  DOMPurify.addHook('uponSanitizeAttribute', (_node, data) => {
    // Our own classes would let a text imitate the page's controls.
    if (data.attrName === 'class' && !allowedClass.test(data.attrValue)) data.keepAttr = false;
    if (data.attrName === 'href' && !allowedUrl(data.attrValue)) data.keepAttr = false;
  });
}

// The nodes of one rendered block, links opened elsewhere and shown with their host, tables and code scrollable.
export function toFragment(html: string, onCopyCode: (button: HTMLButtonElement, code: string) => void): DocumentFragment {
  addHooks();
  const fragment = DOMPurify.sanitize(html, config);
  for (const link of fragment.querySelectorAll('a')) completeLink(link);
  for (const table of fragment.querySelectorAll('table')) wrap(table, scrollable('table-scroll', strings.table));
  for (const pre of fragment.querySelectorAll('pre')) completeCode(pre, onCopyCode);
  return fragment;
}

function completeLink(link: HTMLAnchorElement): void {
  if (!link.hasAttribute('href')) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  link.title = link.href;
  const text = link.textContent ?? '';
  const host = link.protocol === 'mailto:' || link.protocol === 'tel:' ? link.pathname : link.host;
  if (text.includes(host)) return;
  const shown = document.createElement('span');
  shown.className = 'link-host';
  shown.textContent = ` (${host})`;
  link.after(shown);
}

function scrollable(className: string, label: string): HTMLDivElement {
  const box = document.createElement('div');
  box.className = className;
  box.tabIndex = 0;
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', label);
  return box;
}

function wrap(node: Element, box: HTMLElement): void {
  node.replaceWith(box);
  box.append(node);
}

// Code inside lists and quotes; code on its own is a component (message.tsx) of the same look.
function completeCode(pre: HTMLPreElement, onCopyCode: (button: HTMLButtonElement, code: string) => void): void {
  const language = [...(pre.querySelector('code')?.classList ?? [])]
    .find((name) => name.startsWith('language-'))
    ?.slice('language-'.length);
  const figure = document.createElement('div');
  figure.className = 'code';
  const head = document.createElement('div');
  head.className = 'code-head';
  const label = document.createElement('span');
  label.textContent = language ?? strings.code;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'code-copy';
  button.textContent = strings.copy;
  button.addEventListener('click', () => onCopyCode(button, pre.textContent ?? ''));
  head.append(label, button);
  const box = scrollable('code-scroll', strings.codeLabel(language ?? ''));
  wrap(pre, figure);
  figure.replaceChildren(head, box);
  box.append(pre);
}
