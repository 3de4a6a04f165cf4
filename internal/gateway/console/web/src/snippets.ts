// What sends an event, for each input: lines for a shell, to be pasted as they are.
import type {Status, Topic} from './api';

type Snippets = Record<string, string>;

// The same line again would be a repetition of it, so what names a change has the time.
const now = `'$(date +%s)'`;
const lines: Record<string, string> = {
  log: '{"level":"info","service":"shop","user_id":"u-7","message":"order placed","attributes":{"order":"4711"}}',
  metric: '{"type":"queue_length","service":"shop","value":12}',
  meter: `{"type":"bytes","user_id":"acme","space":"acme-main","provider":"eu-west","cause":"c-${now}","delta":1000000}`,
  audit: ['pre_committed', 'committed'].map((state) => `{"type":"change","request_id":"r-${now}","scope":"projects/shop","service":"iam","category":"spec_update","method":"UpdateRole","resource_type":"role","resource":"roles/reader","user_id":"ana","state":"${state}","before":{"ttl_days":30},"after":{"ttl_days":90}}`).join('\n'),
};

/** asksToken reports whether what is sent to a kind needs a token on this machine too. */
export const asksToken = (kind: string) => kind === 'document' || kind === 'timer';

/** snippets are the lines for a topic, by the inputs that its kind takes. base is where the API is; listens: other ports, where they are known. */
export function snippets({name, kind}: Topic, base: string, token: boolean, listens: Status['listens'] | undefined): Snippets {
  const auth = token || asksToken(kind) ? ' \\\n  -H "Authorization: Bearer $ALMANAC_TOKEN"' : '';
  const curl = (url: string, type: string, body: string, method = '') => `curl ${method}'${url}'${auth} \\\n  -H 'Content-Type: ${type}' --data-binary '${body}'`;
  const json = 'application/json';
  if (kind === 'document') return {curl: curl(`${base}/v1/documents/${name}/c-024?path=se/lund`, json, '{"name":"Customer 24","plan":"large"}', '-X PUT ')};
  if (kind === 'timer') {
    const group = `${base}/v1/timers/mails`;
    return {curl: curl(`${group}/config?topic=${name}`, json, '{"slots":16}', '-X PUT ') + '\n' +
      curl(`${group}?topic=${name}`, json, `{"id":"welcome-${now}","execute_at":"'$(($(date +%Y) + 1))'-01-01T00:00:00Z","callback_url":"https://mail.example/send","payload":{"template":"welcome"}}`)};
  }
  const line = lines[kind] ?? lines['log']!;
  const all: Snippets = {
    curl: curl(`${base}/v1/topics/${name}/events`, 'application/x-ndjson', line),
    cli: `echo '${line}' | almanac send ${name} --to ${base} --format ndjson`,
  };
  if (kind === 'meter') all['csv'] = curl(`${base}/v1/topics/${name}/events`, 'text/csv', `type,user_id,space,provider,cause,delta\nbytes,acme,acme-main,eu-west,d-${now},1000000`);
  const {protocol, hostname} = new URL(base);
  const otlp = `${protocol}//${hostname}:${listens?.otlp_http ?? 4318}/t/${name}/v1/`;
  const resource = '"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}';
  const time = `"timeUnixNano":"'$(date +%s)'000000000"`;
  if (kind === 'metric') all['otlp'] = curl(otlp + 'metrics', json, `{"resourceMetrics":[{${resource},"scopeMetrics":[{"metrics":[{"name":"queue_length","gauge":{"dataPoints":[{${time},"asDouble":12}]}}]}]}]}`);
  if (kind !== 'log') return all;
  const port = listens?.syslog_udp;
  return {
    ...all,
    file: `# lines with a time of their own: add &ts_format=syslog, rfc3339 or another\ncurl '${base}/v1/topics/${name}/events?format=text&service=shop'${auth} \\\n  -H 'Content-Type: text/plain' --data-binary @server.log`,
    otlp: curl(otlp + 'logs', json, `{"resourceLogs":[{${resource},"scopeLogs":[{"logRecords":[{${time},"severityText":"INFO","body":{"stringValue":"order placed"}}]}]}]}`),
    loki: curl(`${base}/t/${name}/loki/api/v1/push`, json, `{"streams":[{"stream":{"service":"shop","level":"info"},"values":[["'$(date +%s)'000000000","order placed"]]}]}`),
    elastic: curl(`${base}/elastic/${name}/_bulk`, 'application/x-ndjson', `{"create":{}}\n{"@timestamp":"'$(date -u +%FT%TZ)'","message":"order placed"}\n`),
    syslog: (port ? `# what comes by syslog is of the topic ${listens.syslog_topic}\n` : `# first: almanac up --syslog-udp 127.0.0.1:1514 --syslog-topic ${name}\n`) + `logger --udp --server ${hostname} --port ${port ?? 1514} --tag shop 'order placed'`,
  };
}
