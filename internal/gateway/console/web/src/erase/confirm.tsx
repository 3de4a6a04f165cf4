// The confirmation, which is typed, and the beginning of erasures.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {EraseRequest, Job} from '../api';
import {post} from '../client';
import {Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {number} from '../time';
import {Typed} from '../typed';

type Props = {requests: EraseRequest[]; rows: number; begun: (erasures: string[]) => void};

export function Confirm({requests, rows, begun}: Props): JSX.Element {
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
      <Typed label={<>{texts.erase.confirm(number(rows))} <Text text={word} line /></>} word={word} act={texts.erase.go} kind="danger" busy={busy} run={run} />
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
