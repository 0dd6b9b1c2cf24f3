// Line icons, 20 x 20, drawn with the text's colour. Always decoration: the control has its own label.
import type { ComponentChildren } from 'preact';

function icon(children: ComponentChildren) {
  return () => (
    <svg class="icon" viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.5"
      stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {children}
    </svg>
  );
}

export const MenuIcon = icon(<path d="M3.5 6h13M3.5 10h13M3.5 14h8" />);
export const NewIcon = icon(<><path d="M9.5 4H6a2.5 2.5 0 0 0-2.5 2.5V14A2.5 2.5 0 0 0 6 16.5h7.5A2.5 2.5 0 0 0 16 14v-3.5" /><path d="M8 12l.4-2.3L15 3.1a1.35 1.35 0 0 1 1.9 1.9l-6.6 6.6z" /></>);
export const SettingsIcon = icon(<><path d="M3.5 6h7M14.5 6h2M3.5 14h2M9.5 14h7" /><circle cx="12.5" cy="6" r="2" /><circle cx="7.5" cy="14" r="2" /></>);
export const SunIcon = icon(<><circle cx="10" cy="10" r="3.2" /><path d="M10 2.5v1.5M10 16v1.5M2.5 10H4M16 10h1.5M4.7 4.7l1.05 1.05M14.25 14.25l1.05 1.05M4.7 15.3l1.05-1.05M14.25 5.75l1.05-1.05" /></>);
export const MoonIcon = icon(<path d="M16.3 11.6A6.8 6.8 0 0 1 8.4 3.7a6.8 6.8 0 1 0 7.9 7.9z" />);
export const SendIcon = icon(<path d="M10 16V4.5M5 9.3l5-5 5 5" stroke-width="2" />);
export const StopIcon = icon(<rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" stroke="none" />);
export const CopyIcon = icon(<><rect x="7" y="7" width="9.5" height="9.5" rx="2" /><path d="M13 7V5.5a2 2 0 0 0-2-2H5.5a2 2 0 0 0-2 2V11a2 2 0 0 0 2 2H7" /></>);
export const CheckIcon = icon(<path d="M4.5 10.5l3.7 3.7 7.3-8.4" />);
export const RetryIcon = icon(<><path d="M16 5v3.5h-3.5" /><path d="M15.7 8.5A6.2 6.2 0 1 0 16.2 11.5" /></>);
export const DownIcon = icon(<path d="M10 4v11.5M5 10.7l5 5 5-5" />);
export const CloseIcon = icon(<path d="M5 5l10 10M15 5L5 15" />);
export const TrashIcon = icon(<path d="M4 6h12M8 6V4.5a1 1 0 0 1 1-1h2a1 1 0 0 1 1 1V6M5.5 6l.6 9a1.6 1.6 0 0 0 1.6 1.5h4.6a1.6 1.6 0 0 0 1.6-1.5l.6-9M8.5 9v4.5M11.5 9v4.5" />);
export const WarnIcon = icon(<><circle cx="10" cy="10" r="7" /><path d="M10 6.5v4.2M10 13.4v.1" /></>);
export const KeyboardIcon = icon(<><rect x="2.5" y="5" width="15" height="10" rx="2" /><path d="M5.5 8h.1M8.5 8h.1M11.5 8h.1M14.5 8h.1M6.5 12h7" /></>);

export function Flame({ class: name = '' }: { class?: string }) {
  return (
    <svg class={`flame ${name}`} viewBox="0 0 32 32" aria-hidden="true">
      <path class="flame-outer" d="M17 2c1 5-1.5 7.5-4 10.5C10.5 15.5 8 18 8 21.5 8 26.5 11.8 30 16.2 30 21 30 25 26.4 25 21.3c0-3.8-2-6.8-3.6-8.9-.3 2-1 3.2-2.3 4.1C20.2 11.5 20 6 17 2z" />
      <path class="flame-inner" d="M16.8 17.5c.4 2.3-.6 3.4-1.8 4.7-1 1.1-1.9 2-1.9 3.5 0 2.3 1.6 3.8 3.5 3.8 2.1 0 3.8-1.5 3.8-3.8 0-3.2-2-5.4-3.6-8.2z" />
    </svg>
  );
}
