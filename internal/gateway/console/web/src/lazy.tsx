// Parts of the page that few visits need: each is a file of its own, loaded when it is first shown.
import type {ComponentType, JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {Empty} from './notice';
import {texts} from './texts';

/** lazy makes a component of one that has to be loaded. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [failed, fail] = useState(false);
    const [, redraw] = useState(0);
    useEffect(() => {
      if (!loaded) load().then((part) => { loaded = part; redraw((n) => n + 1); }, () => fail(true));
    }, []);
    if (loaded) {
      const Part = loaded;
      return <Part {...props} />;
    }
    // A server of another version has other files. The page that names them is had again.
    if (failed) return <Empty title={texts.part.missing} hint={texts.part.missingHint}><button class="button" onClick={() => location.reload()}>{texts.part.reload}</button></Empty>;
    return <div class="loading" role="status">{texts.loading}</div>;
  };
}
