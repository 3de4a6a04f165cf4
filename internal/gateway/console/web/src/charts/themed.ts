// Colours of the theme for a canvas, which knows nothing of a style sheet.
import {useEffect, useMemo, useState} from 'preact/hooks';

/** useThemed returns a function of the name of a colour, and another one when the theme has changed. */
export function useThemed(): (name: string) => string {
  const [round, again] = useState(0);
  useEffect(() => {
    const changed = () => again((n) => n + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', changed);
    const told = new MutationObserver(changed);
    told.observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
    return () => {
      system.removeEventListener('change', changed);
      told.disconnect();
    };
  }, []);
  return useMemo(() => {
    const style = getComputedStyle(document.documentElement);
    return (name: string) => style.getPropertyValue(name).trim();
  }, [round]);
}
