// Charts, and the pages that are about topics of one kind, which are named where there is such a topic. They are loaded when
// they are shown.
import type {ComponentType} from 'preact';
import type {Topic} from './api';
import {lazy} from './lazy';

type Props = {topics: Topic[]; query: Record<string, string>};

export const kindPages = ['charts', 'documents', 'timers', 'trails', 'usage'] as const;
export type KindPage = (typeof kindPages)[number];

const kindOf: Record<KindPage, string> = {charts: '', documents: 'document', timers: 'timer', trails: 'audit', usage: 'meter'};

export const kindViews: Record<KindPage, ComponentType<Props>> = {
  charts: lazy(() => import('./charts/charts').then((p) => p.Charts)),
  documents: lazy(() => import('./kinds/pages').then((p) => p.Documents)),
  timers: lazy(() => import('./kinds/pages').then((p) => p.TimersPage)),
  trails: lazy(() => import('./kinds/pages').then((p) => p.Trails)),
  usage: lazy(() => import('./kinds/pages').then((p) => p.Usage)),
};

export const isKindPage = (page: string): page is KindPage => kindPages.some((p) => p === page);

/** shownKinds are the pages that have a topic, and the one that is shown. */
export const shownKinds = (topics: Topic[], page: string) => kindPages.filter((p) => p === page || !kindOf[p] || topics.some((t) => t.kind === kindOf[p]));

/** pageOf is the page of a kind; undefined where its events are searched. */
export const pageOf = (kind: string) => kindPages.find((p) => kindOf[p] === kind);
