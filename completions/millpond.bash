# bash: source <(millpond completion bash)
_millpond() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "train plan evaluate predict watch check bisect report fix info completion --help --version" -- "$word")); return; fi
  case ${COMP_WORDS[1]} in
    train) options="--help --data --data-budget --explain-data --synthetic --shape --epochs --steps-per-epoch --batch --validation --weights --learning-rate --optimizer --loss --memory-target --threads --seed --save --run --live --count-allocations --json " ;;
    plan) options="--help --batch --shape --optimizer --loss --memory-target --threads --by-layer --print-passes --no-passes --json " ;;
    evaluate) options="--help --weights --data --data-budget --batch --loss --threads --json " ;;
    predict) options="--help --weights --data --out --data-budget --batch --threads --json " ;;
    watch) options="--help --out --force --limit --no-probes --native --no-follow-fork --no-source --no-arguments --quiet --verbose --for --json --pid --live --lines " ;;
    check) options="--help --out --force --limit --no-probes --native --no-follow-fork --no-source --no-arguments --quiet --verbose --for --json --max-growth --max-peak --suppress --baseline --write-baseline --tolerance --allow-unsure --junit --sarif --github " ;;
    bisect) options="--help --seconds --only --out --in-place --copy-limit --verbose --json " ;;
    report) options="--help --out --csv --tensorboard --perfetto --share --table --tree --lines --at --rows --verbose --collapsed --speedscope --pprof --growth --color --json " ;;
    fix) options="--help --apply " ;;
    info) options="--help --json " ;;
    completion) options="--help " ;;
  esac
  case $before in
    --optimizer) COMPREPLY=($(compgen -W "adagrad adam adamw lion nadam rmsprop sgd" -- "$word")) ;;
    --loss) COMPREPLY=($(compgen -W "mse mae binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy crossentropy" -- "$word")) ;;
    --data|--weights|--save|--run|--json|--out|--collapsed|--speedscope|--pprof|--suppress|--baseline|--junit|--sarif) COMPREPLY=($(compgen -f -- "$word")) ;;
    *) case $word in
         -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
         *) if [ "$COMP_CWORD" = 2 ] && [ "${COMP_WORDS[1]}" = completion ]; then COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"))
            elif [ "${COMP_WORDS[1]}" = report ]; then COMPREPLY=($(compgen -f -X '!*.pond' -- "$word"))
            elif [ "${COMP_WORDS[1]}" = fix ]; then COMPREPLY=($(compgen -f -- "$word"))
            elif [[ " watch check bisect " == *" ${COMP_WORDS[1]} "* ]]; then COMPREPLY=($(compgen -c -f -- "$word"))
            elif [ "$COMP_CWORD" = 2 ] && [[ " train plan evaluate predict " == *" ${COMP_WORDS[1]} "* ]]; then COMPREPLY=($(compgen -W "tiny mlp_small mlp_large mlp_784 cnn_224 resnet50 gpt2 " -- "$word") $(compgen -f -X '!*.json' -- "$word"))
            else COMPREPLY=($(compgen -f -- "$word")); fi ;;
       esac ;;
  esac
}
complete -o filenames -F _millpond millpond
