// The line of each policy, which is the same in all charts.

// Policies often have the same curve. Dashes keep the lower one visible.
const LINES = {
  off: ["var(--muted)", [6, 4]],
  baseline: ["var(--series-1)", []],
  masking: ["var(--series-4)", [8, 3]],
  balanced: ["var(--series-0)", []],
  aggressive: ["var(--series-3)", [12, 12]],
};
const CUSTOM = ["var(--series-2)", [3, 3]];

// Returns a color, still to be resolved, and dashes for each policy.
export const policyLines = (policies) => policies.map(({ name }) => LINES[name] ?? CUSTOM);
