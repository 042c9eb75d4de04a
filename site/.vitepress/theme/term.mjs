/* global document -- a browser runs this */
import { h, onBeforeUnmount, onMounted, ref, useId } from 'vue';

/** A word with its meaning, which shows under the pointer, with the keyboard's focus, or after a tap, until Escape or another place. */
export const Term = {
  props: { meaning: { type: String, required: true } },
  setup({ meaning }, { slots }) {
    const isShown = ref(false);
    const id = useId();
    const show = () => (isShown.value = true);
    const hide = () => (isShown.value = false);
    // After a tap, browsers move a pointer there and away.
    const ifMouse =
      (then) =>
      ({ pointerType }) =>
        pointerType === 'mouse' && then();
    const hideOnEscape = ({ key }) => key === 'Escape' && hide();
    onMounted(() => document.addEventListener('keydown', hideOnEscape));
    onBeforeUnmount(() => document.removeEventListener('keydown', hideOnEscape));
    return () =>
      h('span', { class: 'term', onPointerenter: ifMouse(show), onPointerleave: ifMouse(hide) }, [
        h(
          'button',
          {
            type: 'button',
            'aria-describedby': isShown.value ? id : undefined,
            onFocus: show,
            onBlur: hide,
            onClick: show,
          },
          slots.default(),
        ),
        isShown.value ? h('span', { id, role: 'tooltip' }, meaning) : undefined,
      ]);
  },
};
