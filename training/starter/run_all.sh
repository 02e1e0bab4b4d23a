#!/bin/sh
# Everything from nothing: corpus, tokenizer, target (three phases), draft (with distillation), export, evaluation.
# The defaults repeat the run that made the files in starter/: about 60 minutes of training on 2 CPU cores.
# On a GPU use --steps instead of --minutes and more documents, for example:
#   DOCS=1200000 DOCS2=600000 T1="--steps 40000 --batch-tokens 16384 --lr 1.8e-3 --warmup 500" \
#   T2="--steps 15000 --batch-tokens 16384 --lr 1e-3 --warmup 100" T3="--steps 4000 --batch-tokens 16384 --lr 3e-4" \
#   D="--steps 40000 --batch-tokens 16384" sh run_all.sh
set -e
TINY=${TINY:-tinystories_sample.txt}         # optional TinyStories text file (CDLA-Sharing-1.0); left out if absent
PY=${PY:-python3}
T1=${T1:---minutes 33 --lr 1.8e-3 --warmup 200}
T2=${T2:---minutes 11.5 --lr 1.3e-3 --warmup 40 --batch-tokens 3072}
T3=${T3:---minutes 3.6 --lr 5e-4 --warmup 20 --batch-tokens 3072}
D=${D:---minutes 7.8}
MIX2=story=0.27,tiny=0.07,qa=0.19,talk=0.08,skill=0.16,copy=0.10,extract=0.05,ood=0.08
MIX3=story=0.28,tiny=0.04,qa=0.17,talk=0.06,skill=0.13,copy=0.12,extract=0.05,ood=0.06,echo=0.09
$PY corpus.py --out data  --docs ${DOCS:-84000}  --seed 1 --tinystories "$TINY"
$PY corpus.py --out data2 --docs ${DOCS2:-26000} --seed 2 --tinystories "$TINY" --mix $MIX2
$PY corpus.py --out data3 --docs ${DOCS2:-42000} --seed 3 --tinystories "$TINY" --mix $MIX3
$PY train.py prepare --data data
$PY train.py prepare --data data2 --tokenizer data/tokenizer.json
$PY train.py prepare --data data3 --tokenizer data/tokenizer.json
$PY train.py target --data data        $T1 --seed 1 --out runs/target
$PY train.py target --data data3       $T2 --seed 2 --init runs/target/best.pt  --out runs/target2
$PY train.py target --data data3,data2 $T3 --seed 3 --init runs/target2/best.pt --out runs/target3
$PY train.py draft  --data data,data3,data2 $D --teacher runs/target3/best.pt --distill-from 0.42 --mix 0.9 --out runs/draft
$PY export.py --ckpt runs/target3/best.pt --name target
$PY export.py --ckpt runs/draft/best.pt   --name draft
$PY evaluate.py loss       --target runs/target3/best.pt --draft runs/draft/best.pt --data data,data3
$PY evaluate.py acceptance --target runs/target3/best.pt --draft runs/draft/best.pt
$PY evaluate.py samples    --target runs/target3/best.pt
