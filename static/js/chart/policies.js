// The line of each policy, which is the same in all charts.

// Policies often have the same curve. Dashes keep the lower one visible.
const LINES = {
  off: ["light-dark(#59616e, #9ba4b1)", [6, 4]],
  baseline: ["light-dark(#b37400, #edb95c)", []],
  masking: ["light-dark(#0f6b70, #6fcfd3)", [8, 3]],
  balanced: ["light-dark(#1f52bf, #8db2ff)", []],
  aggressive: ["light-dark(#6a3fb5, #bda0ff)", [12, 12]],
};
const CUSTOM = ["light-dark(#2f8f5e, #69cf9a)", [3, 3]];

// Returns a color, still to be resolved, and dashes for each policy.
export const policyLines = (policies) => policies.map(({ name }) => LINES[name] ?? CUSTOM);
