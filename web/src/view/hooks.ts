import { useEffect, useReducer, useState } from 'preact/hooks';
import type { Observable } from '../chat';

// Renders again whenever the thing says that it changed.
export function useObservable(thing: Observable): void {
  const [, render] = useReducer((n: number) => n + 1, 0);
  useEffect(() => thing.subscribe(() => render(undefined)), [thing]);
}

// Date.now(), renewed every `everyMs` while `active`.
export function useClock(active: boolean, everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!active) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [active, everyMs]);
  return now;
}
