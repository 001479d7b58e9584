"""`tiny-vl`: a trained model that sees, small enough to ship, and all that made it.

    scenes.py     what a picture may show        drawing.py    the picture
    questions.py  what may be asked of it        wording.py    in which words
    strangers.py  what is no question            vocabulary.py words as tokens
    checkpoint.py the folder that ships
    lessons.py    conversations as tensors       cells.py      pictures alone as tensors
    transcript.py one of these conversations
    network.py    Qwen3-VL with gradients        muon.py       one of its optimizers
    training.py   the loop: `python -m minimsg.tiny_vl FOLDER`
    team.py       two processes that share its steps
    exam.py       pictures and questions that it never saw

It answers whole sentences about coloured shapes and digits, and says so when it is asked
anything else. `model/` holds what training wrote: the served model is `models/qwen3_vl.py`.
"""
