// Written by `make reference` of the API's answers. Change those instead.

export type Accepted = {
  accepted: number;
  refused: Array<{
    line: number;
    element?: number;
    reason: string;
    message: string;
  }>;
  refused_total: number;
  no_time?: number;
  time_fields?: Array<string>;
  repeated?: boolean;
  stored?: boolean;
  erased_since?: Array<string>;
  error?: {
    code: string;
    message: string;
    hint?: string;
    request_id?: string;
  };
};

export type AlertGroup = {
  name?: string;
  topic?: string;
  interval?: string;
  query_offset?: string;
  labels?: Record<string, string>;
  limit?: number;
  rules: Array<{
    alert?: string;
    record?: string;
    topic?: string;
    where?: string;
    window?: string;
    condition?: string;
    silence?: string;
    expr?: string;
    meter?: string;
    measure?: string;
    unusual?: number;
    days?: number;
    least?: number;
    interval?: string;
    query_offset?: string;
    by?: string;
    for?: string;
    keep_firing_for?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    notify?: Array<string>;
  }>;
  receivers?: Array<{
    name: string;
    url: string;
    form?: string;
    routing_key?: string;
    secret?: string;
  }>;
};

export type AlertGroups = {
  groups: Array<AlertGroup>;
};

export type AlertHistory = {
  alerts: Array<{
    state: "inactive" | "pending" | "firing";
    at: string;
    since: string;
    group: string;
    alert: string;
    topic: string;
    by?: string;
    value?: string;
    count: string;
    reason?: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    key: string;
  }>;
  cursor?: string;
};

export type AlertTrial = {
  alerts: Array<{
    state: "inactive" | "pending" | "firing";
    at: string;
    since: string;
    group: string;
    alert: string;
    topic: string;
    by?: string;
    value?: string;
    count: string;
    reason?: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    key: string;
  }>;
  recorded: Array<{
    group: string;
    record: string;
    topic: string;
    labels: Record<string, string>;
    samples: number;
    at: string;
    value: string;
  }>;
  left_out: Array<string>;
};

export type Alerts = {
  alerts: Array<{
    state: "inactive" | "pending" | "firing";
    at: string;
    since: string;
    group: string;
    alert: string;
    topic: string;
    by?: string;
    value?: string;
    count: string;
    reason?: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    key: string;
  }>;
  topics: Array<{
    topic: string;
    rules: number;
    evaluated_up_to?: string;
  }>;
  recording: Array<{
    group: string;
    record: string;
    topic: string;
    at?: string;
    series: number;
    error?: string;
  }>;
};

export type Aligned = {
  topic: string;
  metric?: string;
  metrics?: Array<string>;
  align: string;
  reduce: string;
  by?: Array<string>;
  period?: string;
  from: string;
  to: string;
  series: number;
  groups: Array<{
    metric?: string;
    labels: Record<string, string>;
    unit?: string;
    points: Array<AlignedPoint>;
  }>;
};

export type AlignedPoint = {
  time: string;
  value?: unknown;
  summary?: {
    count: number;
    mean: unknown;
    sum: unknown;
    min: unknown;
    max: unknown;
    m2: unknown;
  };
};

export type AnyObject = Record<string, unknown>;

export type Around = {
  before: Array<Event>;
  event: Event;
  after: Array<Event>;
  shards: Array<string>;
  notes?: Array<string>;
};

export type ChangeRefusal = {
  index: number;
  id: string;
  error: {
    code: string;
    message: string;
    hint?: string;
    request_id?: string;
  };
  have?: number;
  have_path?: string;
  lock?: DocumentLock;
  changes?: Array<ChangeRefusal>;
};

export type Count = {
  count: number;
  shards: Array<string>;
  notice?: string;
  notes?: Array<string>;
};

export type DeadLetter = {
  id: string;
  seq: number;
  topic: string;
  reason: string;
  detail: string;
  subject: string;
  source_seq: number;
  events: number;
  bytes: number;
  at: string;
  lines?: string;
  payload?: string;
};

export type DeadLetters = {
  dead: Array<DeadLetter>;
};

export type DeadReasons = {
  reasons: Array<{
    topic: string;
    reason: string;
    letters: number;
    events: number;
  }>;
};

export type Document = {
  id: string;
  path: string;
  version: number;
  created: string;
  changed: string;
  by?: string;
  op?: "stored" | "updated" | "removed";
  body?: Record<string, unknown> | null;
} | null;

export type DocumentBatch = {
  changes: Array<DocumentChange>;
};

export type DocumentChange = {
  op: "create" | "put" | "update" | "remove";
  id?: string;
  path?: string | null;
  created?: string;
  if_version?: number;
  body?: Record<string, unknown>;
  lock?: number;
  unlock?: boolean;
};

export type DocumentLock = {
  id: string;
  token: number;
  by?: string;
  until: string;
};

export type DocumentPage = {
  documents: Array<Document>;
  cursor?: string;
};

export type DocumentRefusal = {
  error: {
    code: string;
    message: string;
    hint?: string;
    request_id: string;
  };
  have?: number;
  have_path?: string;
  lock?: DocumentLock;
  changes?: Array<ChangeRefusal>;
};

export type EraseRequest = {
  topic: string;
  users?: Array<string>;
  where?: string;
  from?: string;
  to?: string;
  reason?: string;
  purge?: boolean;
};

export type ErasurePlan = {
  topic: string;
  users?: Array<string>;
  where?: string;
  rows: number;
  shards: Array<{
    name: string;
    rows: number;
    of: number;
    diffs?: number;
  }>;
  diffs?: number;
  waiting: number;
  streams: Array<{
    stream: string;
    messages: number;
    gone_by?: string;
    staying: number;
  }>;
};

export type ErasureProof = {
  erasure: {
    id: string;
    topic: string;
    users?: Array<string>;
    where?: string;
    from: number;
    to: number;
    cond: string;
    params?: Record<string, string>;
    schema: number;
    fence: number;
    fence_time: number;
    front?: string;
    reason?: string;
    by?: string;
    state: "settling" | "erasing" | "erased";
    created_at: string;
    settled_at?: string;
    erased_at?: string;
    bounds?: Record<string, number>;
    tails?: Record<string, number>;
    rows: number;
    shards: number;
    diffs?: number;
    purged?: {
      at: string;
      frames: number;
      events: number;
      dead: number;
      erased: number;
      company: number;
    };
    redacted?: boolean;
  };
  shards: Array<{
    name: string;
    rows: number;
    before: number;
    after: number;
    dropped?: boolean;
    diffs?: number;
    kept?: boolean;
    rewritten_at: string;
    seal?: number;
    unsealed?: string;
    old_parts: number;
  }>;
  matching: number;
  matching_diffs?: number;
  kept_sums?: string;
  old_parts: number;
  old_parts_gone_by?: string;
  streams: Array<{
    stream: string;
    messages: number;
    gone_by?: string;
    staying: number;
  }>;
  kept_tables?: Array<string>;
  certified: boolean;
  not_certified?: string;
  hash?: string;
};

export type Erasures = {
  erasures: Array<{
    id: string;
    topic: string;
    users?: Array<string>;
    where?: string;
    from: number;
    to: number;
    cond: string;
    params?: Record<string, string>;
    schema: number;
    fence: number;
    fence_time: number;
    front?: string;
    reason?: string;
    by?: string;
    state: "settling" | "erasing" | "erased";
    created_at: string;
    settled_at?: string;
    erased_at?: string;
    bounds?: Record<string, number>;
    tails?: Record<string, number>;
    rows: number;
    shards: number;
    diffs?: number;
    purged?: {
      at: string;
      frames: number;
      events: number;
      dead: number;
      erased: number;
      company: number;
    };
    redacted?: boolean;
  }>;
};

export type Error = {
  error: {
    code: string;
    message: string;
    hint?: string;
    request_id: string;
  };
};

export type Event = {
  ts?: string;
  id?: string;
  level?: string;
  service?: string;
  type?: string;
  user_id?: string;
  trace_id?: string;
  span_id?: string;
  message?: string;
  attributes?: Record<string, string>;
  month?: number;
  shard?: string;
  pos?: number;
  [name: string]: unknown;
};

export type Exported = {
  group?: string;
  revision?: number;
};

export type Facets = {
  count: number;
  facets: Array<{
    field: string;
    values: Array<ValueCount>;
    other: number;
    empty: number;
    approximate?: boolean;
  }>;
  shards: Array<string>;
  notice?: string;
  notes?: Array<string>;
};

export type Fields = {
  fields: Array<{
    name: string;
    want: string;
    count: number;
  }>;
  read: number;
  sampled: boolean;
  shards: Array<string>;
  notes?: Array<string>;
};

export type Histogram = {
  count: number;
  step: string;
  zone?: string;
  by?: string;
  buckets?: Array<{
    ts: string;
    count: number;
    by?: Record<string, number>;
  }>;
  shards: Array<string>;
  notice?: string;
  notes?: Array<string>;
};

export type InFlight = {
  in_flight: boolean;
};

export type Job = {
  id: string;
  kind: "erasure" | "replay" | "dead_letters" | "verify";
  topic: string;
  state: "queued" | "running" | "done" | "failed" | "cancelled";
  request: Record<string, unknown>;
  by?: string;
  cancelled_by?: string;
  created_at: string;
  started_at?: string;
  updated_at: string;
  ended_at?: string;
  progress?: string;
  result?: Record<string, unknown>;
  error?: string;
  tries?: number;
  cancel?: boolean;
  resume?: unknown;
};

export type Jobs = {
  jobs: Array<Job>;
};

export type Lag = {
  topics: Array<{
    topic: string;
    unrouted: number;
    unrouted_bytes: number;
    unrouted_seconds: number;
    unstored?: number;
    unstored_bytes?: number;
    unstored_seconds?: number;
  }>;
  streams: Array<{
    stream: string;
    messages: number;
    bytes: number;
    limit_bytes: number;
  }>;
  at: string;
  away: Array<{
    server: string;
    since: string;
    why: string;
  }>;
};

export type LoadRequest = {
  ids: Array<string>;
};

export type LockRequest = {
  for?: string;
  by?: string;
  token?: number;
};

export type Page = {
  events: Array<Event>;
  cursor?: string;
  back?: string;
  shards: Array<string>;
  notice?: string;
  notes?: Array<string>;
};

export type Proof = {
  ok: boolean;
  at: string;
  took_seconds: number;
  report: {
    accepted: number;
    stored: number;
    dead: number;
    pending: number;
    missing: number;
    doubled: number;
    dropped: number;
    erased: number;
    discarded: number;
    repeated: number;
    topics: Array<{
      topic: string;
      accepted: number;
      stored: number;
      dead: number;
      pending: number;
      missing: number;
      doubled: number;
      dropped: number;
      erased: number;
      discarded: number;
      repeated: number;
      taken?: {
        shards: number;
        rows: number;
        frames: number;
        since?: string;
      };
      repeats?: number;
      derived?: Array<string>;
      front?: {
        hot: number;
        cold: number;
        waiting: number;
        differ: number;
        erasing?: number;
        erasure?: string;
        stream: string;
        noun: string;
      };
      shards: Array<{
        name: string;
        routed: number;
        expected: number;
        erased: number;
        stored: number;
        distinct: number;
        head: number;
        tail: number;
        dropped?: number;
        note?: string;
        by_count?: boolean;
        problems?: Array<string>;
      }>;
    }>;
    lost_messages?: number;
    foreign?: number;
    taken?: {
      shards: number;
      rows: number;
      frames: number;
      since?: string;
    };
    problems?: Array<string>;
  };
};

export type RefusedLines = {
  accepted?: number;
  refused?: Array<{
    line: number;
    element?: number;
    reason: string;
    message: string;
  }>;
  refused_total?: number;
  no_time?: number;
  time_fields?: Array<string>;
  repeated?: boolean;
  stored?: boolean;
  erased_since?: Array<string>;
  error: {
    code: string;
    message: string;
    hint?: string;
    request_id: string;
  };
};

export type ReplayRequest = {
  topic: string;
  into: string;
  shard?: string;
  where?: string;
  from?: string;
  to?: string;
  from_pos?: number;
  to_pos?: number;
  order?: "position" | "time";
  again?: boolean;
  speed?: number;
  rate?: number;
  job?: string;
};

export type RetryPolicy = {
  max_attempts?: number;
  max_retries?: number;
  max_duration?: string;
  initial_interval?: string;
  backoff_multiplier?: number;
  max_interval?: string;
  retry_on?: Array<number>;
  [name: string]: unknown;
};

export type SQLSchema = {
  tables: Array<{
    name: string;
    columns: Array<{
      name: string;
      type: string;
      comment?: string;
    }>;
  }>;
};

export type SavedSearch = {
  name?: string;
  kind?: "" | "charts";
  topics: Array<string>;
  from?: string;
  to?: string;
  where?: string;
  shown?: Record<string, string>;
  saved_by?: string;
  saved_at?: string;
};

export type SavedSearches = {
  searches: Array<SavedSearch>;
};

export type SearchCount = {
  count: number;
  topics: Array<{
    topic: string;
    count: number;
    shards: Array<string>;
    notice?: string;
    notes?: Array<string>;
  }>;
};

export type SearchPage = {
  events: Array<{
    topic: string;
    event: Event;
  }>;
  cursor?: string;
  back?: string;
  topics: Array<{
    topic: string;
    count: number;
    shards: Array<string>;
    notice?: string;
    notes?: Array<string>;
  }>;
};

export type Series = {
  metric: string;
  service?: string;
  user_id?: string;
  unit?: string;
  labels: Record<string, string>;
  points?: Array<string>;
  first: string;
  last: string;
};

export type SeriesList = {
  series: Array<Series>;
  more: boolean;
};

export type Settled = {
  retried: number;
  dropped: number;
  kept: number;
  events: number;
  letters: Array<{
    id: string;
    seq: number;
    reason: string;
    events: number;
    did: string;
    why?: string;
  }>;
};

export type Shards = {
  shards: Array<{
    name: string;
    topic: string;
    month: string;
    shard: string;
    lane: number;
    status: string;
    rows: number;
    erased: number;
    dropped: number;
    bytes: number;
    frames: number;
    stored: number;
    min_ts: string;
    max_ts: string;
    created_at: string;
    last_write_at: string;
    rotated_at?: string;
    reason?: string;
    dropped_at?: string;
    drop_reason?: string;
    anonymised_at?: string;
    anonymised?: Array<string>;
    places?: Array<{
      volume: string;
      disk: string;
      bytes: number;
    }>;
  }>;
};

export type Sizes = {
  topic: string;
  at: string;
  group_by?: string;
  sizes: Array<{
    meter?: string;
    provider?: string;
    space?: string;
    customer?: string;
    at: string;
    size: string;
    causes: number;
    repeats: number;
    anomaly: boolean;
  }>;
  cursor?: string;
  too_late?: TooLate;
};

export type Statement = {
  id: string;
  state: "running" | "done" | "failed" | "cancelled";
  began_at: string;
  elapsed_seconds: number;
  answer_bytes: number;
  progress?: {
    rows: number;
    bytes: number;
    total_rows: number;
    memory_bytes: number;
  };
  read?: {
    rows: number;
    bytes: number;
  };
};

export type Status = {
  away: Array<{
    server: string;
    since: string;
    why: string;
  }>;
  lag?: Lag;
  state?: {
    topics: Array<{
      topic: string;
      shards: Record<string, number>;
      sql_fresh_seconds: number;
      dead_letters: number;
      retention_overdue: number;
    }>;
    streams: Array<{
      stream: string;
      messages: number;
      bytes: number;
      limit_bytes: number;
    }>;
    members: Record<string, number>;
    erasures: Record<string, number>;
    oldest_erasure?: string;
  };
  state_at?: string;
  servers: {
    nats?: string;
    clickhouse?: string;
  };
  disks: Array<{
    server: string;
    disk: string;
    free_bytes: number;
    total_bytes: number;
    silent_since?: string;
  }>;
  version: string;
  inputs: Array<{
    input: string;
    topic: string;
    last_event: string;
    last_event_seconds_ago: number;
    events: number;
    events_per_second: number;
  }>;
  listens: {
    otlp_http?: number;
    syslog_udp?: number;
    syslog_topic?: string;
  };
};

export type Timer = {
  group: string;
  id: string;
  state: "pending" | "firing" | "done" | "failed" | "cancelled";
  execute_at: string;
  revision: number;
  attempt: number;
  callback_url?: string;
  payload?: unknown;
  bare?: boolean;
  callback_timeout?: string;
  max_lateness?: string;
  retry_policy?: RetryPolicy;
  user_id?: string;
  life: string;
  slot: number;
  created_at?: string;
  updated_at: string;
  executed_at: string | null;
  last: "created" | "updated" | "firing" | "done" | "failed" | "retry" | "rescheduled" | "cancelled" | "restored";
  status?: number;
  error?: string;
  detail?: string;
  late_ms?: number;
  took_ms?: number;
};

export type TimerChanged = {
  group: string;
  id: string;
  state: "pending" | "firing" | "done" | "failed" | "cancelled";
  revision: number;
};

export type TimerGroup = {
  group: string;
  created_at: string;
  slots: number;
  callback_timeout?: string;
  retry_policy?: RetryPolicy;
  allow_hosts?: Array<string>;
  secret?: string;
  max_concurrent?: number;
  max_per_second?: number;
  max_pending?: number;
  max_bytes?: number;
  paused?: boolean;
  answer?: "" | "json" | "status";
  keep_detail?: boolean;
};

export type TimerGroupRequest = {
  slots?: number;
  callback_timeout?: string;
  retry_policy?: RetryPolicy;
  allow_hosts?: Array<string>;
  secret?: string;
  max_concurrent?: number;
  max_per_second?: number;
  max_pending?: number;
  max_bytes?: number;
  paused?: boolean;
  answer?: "" | "json" | "status";
  keep_detail?: boolean;
  [name: string]: unknown;
};

export type TimerGroups = {
  groups: Array<{
    group: string;
    paused: boolean;
    pending: number;
    firing: number;
    done: number;
    failed: number;
    cancelled: number;
    overdue: number;
    oldest_overdue_seconds: number;
    why?: string;
    largest_slot_to_mean: number;
    fullest_slot: number | null;
    bytes: number;
  }>;
};

export type TimerRequest = {
  id?: string;
  execute_at?: string | null;
  callback_url?: string | null;
  payload?: unknown;
  bare?: boolean | null;
  callback_timeout?: string | null;
  max_lateness?: string | null;
  retry_policy?: RetryPolicy;
  user_id?: string;
  replace?: boolean;
  exported?: Exported;
  [name: string]: unknown;
};

export type Timers = {
  timers: Array<Timer>;
  cursor?: string;
};

export type TooLate = {
  diffs: number;
  months: Array<string>;
  more?: boolean;
};

export type Topic = {
  name: string;
  kind: string;
  lanes: number;
  lane_by: Array<string>;
  fields: Array<{
    name: string;
    type: string;
    from?: string;
    since: number;
  }> | null;
  rotate: {
    rows: number;
    bytes: number;
    span: number;
  };
  keep_days: number;
  anonymise?: {
    after_days: number;
    fields?: Array<string>;
  };
  cold_after_days?: number;
  sql_fresh?: number;
  pii?: Array<{
    field: string;
    rule: string;
    grid?: number;
    since?: number;
    until?: number;
  }>;
  lifted?: Array<{
    field: string;
    rule: string;
    grid?: number;
    since?: number;
    until?: number;
  }>;
  once_by?: Array<string>;
  once_within?: number;
  body_limit?: number;
  documents?: {
    ids?: string;
    id_length?: number;
    hot_for?: number;
    max_documents?: number;
    max_bytes?: number;
    user_field?: string;
  };
  metrics?: Array<{
    name: string;
    unit?: string;
    points?: string;
    type?: string;
    labels?: Array<string>;
    required?: Array<string>;
    defaults?: Record<string, string>;
  }>;
  strict?: boolean;
  version: number;
  first?: number;
};

export type TopicField = {
  name: string;
  type: string;
  from?: string;
  since?: number;
};

export type TopicPlan = {
  topic: string;
  did: "created" | "changed" | "unchanged" | "would be created" | "would be changed" | "would stay unchanged";
  now: Topic;
  loss?: Array<{
    step: string;
    shards: number;
    rows: number;
    bytes: number;
    from: string;
    exact: boolean;
  }>;
  sooner?: Array<{
    shard: string;
    step: string;
    at: string;
    rows: number;
    bytes: number;
    status: string;
  }>;
  rules?: Array<{
    field: string;
    rule: string;
    events_of_last_day: number | null;
  }>;
  notes?: Array<string>;
  behind?: Array<{
    role: string;
    name: string;
    host: string;
    pid: number;
  }>;
};

export type TopicRequest = {
  name?: string;
  kind?: string;
  lanes?: number;
  lane_by?: Array<string>;
  fields?: Array<TopicField> | null;
  rotate?: TopicRotation;
  keep_days?: number;
  anonymise?: {
    after_days: number;
    fields?: Array<string>;
  };
  cold_after_days?: number;
  sql_fresh?: number;
  pii?: Array<{
    field: string;
    rule: string;
    grid?: number;
    since?: number;
    until?: number;
  }>;
  lifted?: Array<{
    field: string;
    rule: string;
    grid?: number;
    since?: number;
    until?: number;
  }>;
  once_by?: Array<string>;
  once_within?: number;
  body_limit?: number;
  documents?: {
    ids?: string;
    id_length?: number;
    hot_for?: number;
    max_documents?: number;
    max_bytes?: number;
    user_field?: string;
  };
  metrics?: Array<{
    name: string;
    unit?: string;
    points?: string;
    type?: string;
    labels?: Array<string>;
    required?: Array<string>;
    defaults?: Record<string, string>;
  }>;
  strict?: boolean;
  version?: number;
  first?: number;
};

export type TopicRotation = {
  rows?: number;
  bytes?: number;
  span?: number;
};

export type Topics = {
  topics: Array<Topic>;
};

export type Trail = {
  entries: Array<{
    began: string;
    ended?: string;
    state?: "pre_committed" | "committed" | "rolled_back";
    disputed?: boolean;
    type: string;
    request_id: string;
    scope: string;
    service?: string;
    method?: string;
    resource_type?: string;
    resource?: string;
    category?: string;
    user_id?: string;
    level?: string;
    message?: string;
    before?: unknown;
    after?: unknown;
    before_bytes?: number;
    after_bytes?: number;
    attributes?: Record<string, string>;
    events: number;
    history?: Array<{
      ts: string;
      id: string;
      type: string;
      state?: "pre_committed" | "committed" | "rolled_back";
      request_id: string;
      scope: string;
      service?: string;
      method?: string;
      resource_type?: string;
      resource?: string;
      category?: string;
      user_id?: string;
      level?: string;
      message?: string;
      before?: unknown;
      after?: unknown;
      before_bytes?: number;
      after_bytes?: number;
      attributes?: Record<string, string>;
    }>;
  }>;
  cursor?: string;
};

export type Usage = {
  topic: string;
  from: string;
  to: string;
  measure: string;
  group_by?: string;
  bills: Array<{
    meter?: string;
    provider?: string;
    space?: string;
    customer?: string;
    from: string;
    to: string;
    size_start: string;
    size_end: string;
    usage: string;
    average?: string;
    causes: number;
    repeats: number;
    anomaly: boolean;
  }>;
  cursor?: string;
  contradictions?: number;
  too_late?: TooLate;
};

export type UsageDiff = {
  time: string;
  meter: string;
  provider?: string;
  space: string;
  customer?: string;
  cause: string;
  delta: string;
  id: string;
};

export type UsageDiffs = {
  diffs: Array<UsageDiff>;
  cursor?: string;
  contradictions?: {
    count: number;
    pairs: Array<{
      counts: UsageDiff;
      copy: UsageDiff;
    }>;
  };
};

export type ValueCount = {
  value: string;
  count: number;
};

export type Values = {
  field: string;
  values: Array<ValueCount>;
  read: number;
  sampled: boolean;
  shards: Array<string>;
  notes?: Array<string>;
};
