// What opens below a button, and closes by Escape or by a click elsewhere.
import type {RefObject} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';

export function usePopover(): {open: boolean; setOpen: (on: boolean) => void; box: RefObject<HTMLDivElement | null>} {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const out = (e: Event) => {
      if (e instanceof KeyboardEvent && e.key === 'Escape') {
        setOpen(false);
        box.current?.querySelector('button')?.focus();
      } else if (!(e instanceof KeyboardEvent) && !box.current?.contains(e.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', out);
    document.addEventListener('keydown', out);
    return () => {
      document.removeEventListener('pointerdown', out);
      document.removeEventListener('keydown', out);
    };
  }, [open]);
  return {open, setOpen, box};
}
