// The pages of kinds, which are a part of their own.
import '../core';
export {Documents} from './documents';
export {TimersPage} from './timers';
export {Trails} from './trails';
export {Usage} from './usage';
