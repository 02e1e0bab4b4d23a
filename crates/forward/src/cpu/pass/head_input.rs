//! Inputs of a draft head's pass. An EAGLE head takes the norms of the token's embedding and of a
//! state side by side; the state is the target's fused ones or the head's own (Li et al. 2025). An
//! MTP block projects both to one state (DeepSeek-AI 2024).

use super::PassContext;
use crate::cpu::head::{Eagle3, Mtp};
use crate::cpu::panels::Panels;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;
use crate::{Features, HeadInput};

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl<'a> PassContext<'a> {
    /// Builds the attention input of all rows of an EAGLE head: the norms of embedding and state,
    /// side by side. The residual is the state, or its norm.
    pub fn eagle_input(
        &self,
        member: &Member<'_>,
        head: &Eagle3,
        head_input: HeadInput<'_>,
        embedding_norm: &[f32],
    ) -> &'a Inputs {
        self.load_states(member, head, head_input);
        self.concat_norms(member, embedding_norm, &head.state_norm, head.normed_residual)
    }

    /// Computes the states that enter the layer of an MTP block from `states`.
    pub fn mtp_input(&self, member: &Member<'_>, mtp: &Mtp, states: Features<'_>) {
        self.copy_states(member, states);
        let input = self.concat_norms(member, &mtp.embedding_norm, &mtp.state_norm, false);
        let task = self.task(&mtp.eh_proj, input, self.hidden(0), false);
        self.products(member, &[task], self.network.layers[0].mixer.first());
    }

    /// Writes the norms of embedding and state of all rows side by side. With `replaced`, the norm
    /// also replaces the state.
    fn concat_norms(
        &self,
        member: &Member<'_>,
        embedding_norm: &[f32],
        state_norm: &[f32],
        replaced: bool,
    ) -> &'a Inputs {
        let (hidden, epsilon) = (self.config.hidden, self.config.norm_epsilon as f32);
        let input = &self.workspace.head_input;
        let Some(table) = &self.network.embedding else { return input };
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let (out, state) = (input.row(row), self.hidden(row));
                // SAFETY: the row belongs to this unit and has room for both.
                unsafe {
                    let embedding = std::slice::from_raw_parts_mut(out, hidden);
                    if !self.copy_media(row, embedding) {
                        table.unpack_row(self.tree.token(row + self.first) as usize, embedding);
                    }
                    (self.kernels.rms_norm)(out, embedding_norm.as_ptr(), out, hidden, epsilon);
                    let half = out.add(hidden);
                    (self.kernels.rms_norm)(state, state_norm.as_ptr(), half, hidden, epsilon);
                    if replaced {
                        std::ptr::copy_nonoverlapping(half, state, hidden);
                    }
                    self.quantise(input, row, 0..2 * hidden, out);
                }
            }
        });
        member.barrier();
        input
    }

    /// Loads the head's input states: its own as they are, the target's fused.
    fn load_states(&self, member: &Member<'_>, head: &Eagle3, head_input: HeadInput<'_>) {
        match head_input {
            HeadInput::Own(states) => self.copy_states(member, states),
            HeadInput::Target(states) => {
                let first = self.network.layers[0].mixer.first();
                self.fuse(member, &head.fuse, &head.fused_norms, states, first);
            }
        }
    }

    /// Copies `states` to the hidden states.
    fn copy_states(&self, member: &Member<'_>, states: Features<'_>) {
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let state = states.row(row).as_ptr();
                // SAFETY: the row belongs to this unit and is as wide as the head's input.
                unsafe { std::ptr::copy_nonoverlapping(state, self.hidden(row), self.config.hidden) };
            }
        });
        member.barrier();
    }

    /// Fuses the target's states of several layers into one state, by `norms` and the matrix
    /// `fuse`.
    pub fn fuse(
        &self,
        member: &Member<'_>,
        fuse: &Panels,
        norms: &[Vec<f32>],
        states: Features<'_>,
        prefetch: &Panels,
    ) {
        member
            .share(self.nodes, 1, |rows| rows.for_each(|row| self.norm_states(norms, row, states.row(row))));
        member.barrier();
        let task = self.task(fuse, &self.workspace.states, self.hidden(0), false);
        self.products(member, &[task], prefetch);
    }

    /// Copies a row of the target's states to the input of `fuse`, normed where the head norms
    /// them.
    fn norm_states(&self, norms: &[Vec<f32>], row: usize, state: &[f32]) {
        let (states, epsilon) = (&self.workspace.states, self.config.norm_epsilon as f32);
        let out = states.row(row);
        // SAFETY: the row belongs to this unit and is as wide as the head's input.
        unsafe {
            std::ptr::copy_nonoverlapping(state.as_ptr(), out, state.len());
            let width = state.len() / norms.len().max(1);
            for (norm, at) in norms.iter().zip((0..).step_by(width)) {
                (self.kernels.rms_norm)(out.add(at), norm.as_ptr(), out.add(at), width, epsilon);
            }
            self.quantise(states, row, 0..state.len(), out);
        }
    }
}
