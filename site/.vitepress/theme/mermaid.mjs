/* global document -- a browser runs this */
import { useData, withBase } from 'vitepress';
import { nextTick, onMounted, ref, watch } from 'vue';

let loading;
let drawn = 0;

/** Mermaid's own bundle, which src/pages.mjs copies: loaded by the pages that have a diagram, and from no other server. */
const mermaid = () =>
  (loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = withBase('/mermaid.min.js');
    script.onload = () => resolve(globalThis.mermaid);
    script.onerror = () => reject(new Error(`${script.src} cannot be loaded.`));
    document.head.append(script);
  }));

/** Shows the source until the diagram is drawn, and draws it again for the other theme. */
export const mermaidOf = (h) => ({
  props: { source: { type: String, required: true } },
  setup({ source }) {
    const text = decodeURIComponent(source);
    const svg = ref('');
    const { isDark } = useData();
    const draw = async () => {
      const { initialize, render } = await mermaid();
      initialize({ startOnLoad: false, theme: isDark.value ? 'dark' : 'default' });
      await nextTick();
      svg.value = (await render(`diagram-${String(++drawn)}`, text)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      svg.value ? h('div', { class: 'mermaid', innerHTML: svg.value }) : h('pre', text);
  },
});
