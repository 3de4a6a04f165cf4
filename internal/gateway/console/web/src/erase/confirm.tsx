// The confirmation, which is typed, and the beginning of erasures.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {EraseRequest, Job} from '../api';
import {post} from '../client';
import {Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {number} from '../time';

type Props = {requests: EraseRequest[]; rows: number; begun: (erasures: string[]) => void};

export function Confirm({requests, rows, begun}: Props): JSX.Element {
  const [typed, setTyped] = useState('');
  const [began, setBegan] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const word = wordOf(requests);
  const run = async () => {
    setBusy(true);
    setError(undefined);
    const ids = [...began]; // those of a try that broke off are not entered twice
    try {
      for (const request of requests.slice(ids.length)) {
        const job = await post<Job>('v1/erasures', {}, request);
        ids.push(String(job.request['erasure']));
      }
      begun(ids);
    } catch (e) {
      setBegan(ids);
      setError(e as Error);
      setBusy(false);
    }
  };
  return (
    <>
      <form class="row confirm" onSubmit={(e) => { e.preventDefault(); if (typed === word && !busy) void run(); }}>
        <label class="row"><span>{texts.erase.confirm(number(rows))} <Text text={word} line /></span>
          <input value={typed} class="mono" spellcheck={false} autocomplete="off" onInput={(e) => setTyped(e.currentTarget.value)} />
        </label>
        <button class="button danger" disabled={typed !== word || busy}>{texts.erase.go}</button>
      </form>
      {error && <Problem error={error} />}
    </>
  );
}

/** wordOf is what is typed: the user, else the topic, else what is done. */
function wordOf(requests: EraseRequest[]): string {
  const users = requests[0]?.users ?? [];
  if (users.length === 1) return users[0]!;
  return requests.length === 1 ? requests[0]!.topic : texts.erase.word;
}
