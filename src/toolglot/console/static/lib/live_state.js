// Whether live updates arrive; null while no view wants them.
import { signal } from "console/lib/html.js";

export const live = signal(null);
